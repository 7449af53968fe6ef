"""How long prompts and outputs were."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dashboard.figures.style import BLUE, ORANGE, panels, tint
from simcore.core.result import Columns

_BINS = 50


def length_histograms(requests: Columns) -> go.Figure | None:
    """Prompt tokens of all requests and output tokens of the finished ones, on a logarithmic axis."""
    finished = requests["state"] == "finished"
    lengths = {
        "prompt": (requests["prompt_tokens"], BLUE),
        "output": (requests["output_tokens"][finished], ORANGE),
    }
    if not len(requests["state"]):
        return None
    figure = panels("tokens (logarithmic)", "requests in a bin")
    for name, (tokens, colour) in lengths.items():
        if not len(tokens):
            continue
        edges, counts = histogram(tokens)
        # An outline, as bars have no dependable width on a logarithmic axis.
        figure.add_scatter(
            x=np.concatenate((edges[:1], edges)),
            y=np.concatenate(([0], counts, [0])),
            mode="lines",
            line={"shape": "hv", "color": colour, "width": 1.5},
            fill="tozeroy",
            fillcolor=tint(colour),
            name=name,
            hovertemplate="%{y:,} from %{x:,.0f} tokens",
        )
    figure.update_xaxes(type="log", tickformat="~s", dtick="D2")
    return figure


def histogram(tokens: NDArray[np.generic]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Edges and counts of bins equally wide on a logarithmic axis; no bin is narrower than one token."""
    low, high = float(tokens.min()) - 0.5, float(tokens.max()) + 0.5
    edges = np.unique(np.floor(np.geomspace(low, high, _BINS + 1)) + 0.5)
    edges = np.unique(np.clip(edges, low, high))
    edges = np.unique(np.concatenate(([low], edges, [high])))
    return edges, np.histogram(tokens, bins=edges)[0]
