"""What held each request of a measured run back, as the run itself shows it.

| regime | a request |
|---|---|
| unloaded | waited for its first step less than 5% of its time in the service |
| knee | waited longer, but less than half of its time |
| overload | waited for half of its time or more |
| KV thrashing | waited 5% or more while KV memory was, on average, at least 90% full |

The last goes before the two above it, and is known only where the run recorded its KV memory.
"""

import numpy as np
from numpy.typing import NDArray

from fidelity.request_runs import MeasuredSeries, RequestRun

REGIMES = ("unloaded", "knee", "overload", "KV thrashing")
_SHORT_WAIT, _LONG_WAIT = 0.05, 0.5
_FULL = 0.9


def regimes_of(run: RequestRun) -> NDArray[np.intp]:
    """The regime of each request, as a place in ``REGIMES``."""
    waited = run.queue_s / run.e2e_s
    regime = np.where(waited < _SHORT_WAIT, 0, np.where(waited < _LONG_WAIT, 1, 2))
    if run.series.kv_used_share is not None:
        full = _mean_over_wait(run, run.series, run.series.kv_used_share) >= _FULL
        regime[(waited >= _SHORT_WAIT) & full] = 3
    return regime.astype(np.intp)


def _mean_over_wait(run: RequestRun, series: MeasuredSeries, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the seconds in which a request waited, of values that stand for the second before their time."""
    first = np.searchsorted(series.time_s, run.arrival_s, side="right").clip(max=len(values) - 1)
    last = np.searchsorted(series.time_s, run.scheduled_s).clip(first, len(values) - 1)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    mean: NDArray[np.float64] = (sums[last + 1] - sums[first]) / (last + 1 - first)
    return mean
