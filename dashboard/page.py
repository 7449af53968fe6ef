"""The page that every report is: one HTML file that needs no network, no server and no other file."""

import plotly.graph_objects as go
from plotly.io import to_json
from plotly.offline import get_plotlyjs

from dashboard.markup import text
from dashboard.stylesheet import STYLESHEET
from simcore.core.outputs import PAGE_MARK

# Nothing may be fetched, whatever a page's text or plotly.js asks for; images are what "download plot" makes.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"

# Left alone, plotly.js offers to upload a figure to its maker's service: that button and its address are taken away.
_DRAW = """
for (const source of document.querySelectorAll("script[data-plot]")) {
  const {data, layout} = JSON.parse(source.textContent);
  Plotly.newPlot(source.dataset.plot, data, layout, {
    responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  });
}
"""


def page(title: str, body: str) -> str:
    """A complete HTML document around a body of sections and figures."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"{PAGE_MARK}"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{STYLESHEET}</style></head>\n<body><main>{body}"
        '<noscript><p class="box warning">The figures need JavaScript, which is switched off.</p></noscript></main>\n'
        f"<script>{get_plotlyjs()}</script>\n<script>{_DRAW}</script></body></html>\n"
    )


def figure_block(name: str, figure: go.Figure | None, title: str, caption: str) -> str:
    """A figure under its title and above its caption; where there is nothing to draw, it says so."""
    head = f"<h3>{text(title)}</h3>"
    if figure is None:
        return f'<figure>{head}<p class="empty">– no data</p></figure>'
    # The standard library's encoder, as others round differently; "<" escaped, as it could end the script element.
    document = (to_json(figure, validate=False, engine="json") or "").replace("<", "\\u003c")
    return (
        f'<figure>{head}<div id="{name}" class="plot" role="img" aria-label="{text(title)}. {text(caption)}" '
        f'style="min-height:{figure.layout.height}px"></div><figcaption>{text(caption)}</figcaption>'
        f'<script type="application/json" data-plot="{name}">{document}</script></figure>'
    )
