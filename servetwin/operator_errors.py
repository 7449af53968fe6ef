"""Where a profile's error in steps comes from: some steps of a live run, run again and timed operator by operator."""

from collections.abc import Iterator, Mapping
from statistics import median

import numpy as np
from numpy.typing import NDArray

from fidelity.live_validation import PartCompared
from live.measuring.passes import PassProbe, PassShape, PassTimes
from simcore.cost.breakdown import StepShape
from simcore.cost.host_time import HOST
from simcore.cost.operators import MEASURED_AS
from simcore.cost.step_cost import StepCost

_STEPS = 10
_REPEATS = 3
_GEMMS, _ATTENTION = "GEMMs", "attention"


def operator_errors(probe: PassProbe, cost: StepCost, steps: Mapping[str, NDArray[np.int64]]) -> list[PartCompared]:
    """What each group of operators took in steps spread over a run, and what the profile says; the host's pass too."""
    measured: dict[str, float] = {}
    priced: dict[str, float] = {}
    for shape in _shapes(steps, probe.tokens):
        _add(measured, _measured(probe, shape))
        chunks = tuple((tokens, before) for tokens, before in shape.chunks)
        for time in cost.terms(StepShape(shape.decodes, max(shape.context - 1, 0), chunks)):
            group = _group(time.name)
            if time.source != HOST:
                _add(priced, {group: time.seconds})
    return [PartCompared(name, seconds, priced.get(name, 0.0)) for name, seconds in sorted(measured.items())]


def _shapes(steps: Mapping[str, NDArray[np.int64]], most_tokens: int) -> Iterator[PassShape]:
    """Steps at even distances; of their decodes and chunks the means."""
    count = len(steps["rows"])
    for place in np.unique(np.linspace(0, count - 1, min(_STEPS, count)).round().astype(int)).tolist():
        decodes, chunks = int(steps["decoding"][place]), int(steps["chunks"][place])
        context = 1 + round(steps["decode_context"][place] / decodes) if decodes else 0
        new = before = 0
        if chunks:
            new, before = (round(steps[name][place] / chunks) for name in ("chunk_tokens", "chunk_context"))
        if decodes * (context + 16) + chunks * (new + before + 16) <= most_tokens:
            yield PassShape(decodes, context, ((new, before),) * chunks)


def _measured(probe: PassProbe, shape: PassShape) -> dict[str, float]:
    times = [probe.run(shape) for _ in range(_REPEATS)]
    calm = [one for one in times if not one.disturbed] or times
    middle = median(one.total_s for one in calm)
    return _by_group(min(calm, key=lambda one: abs(one.total_s - middle)))


def _by_group(times: PassTimes) -> dict[str, float]:
    """Attention of decodes and chunks together has no lap of its own: it is what is left."""
    found: dict[str, float] = {}
    for launch, seconds in times.seconds.items():
        if launch.kind == "gemm":
            name = _GEMMS
        else:
            name = str(dict(launch.shape)["operator"]) if launch.kind == "elementwise" else _ATTENTION
        _add(found, {name: seconds * times.counts[launch] * launch.parts})
    left_s = times.total_s - times.rest_s - sum(found.values())
    _add(found, {_ATTENTION: max(left_s, 0.0)})
    return found


def _group(name: str) -> str:
    if name in MEASURED_AS:
        return MEASURED_AS[name]
    return _ATTENTION if name.partition("_window")[0].endswith("_attention") else _GEMMS


def _add(total: dict[str, float], more: Mapping[str, float]) -> None:
    for name, seconds in more.items():
        total[name] = total.get(name, 0.0) + seconds
