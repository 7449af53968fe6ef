"""How a latency is distributed in one result, in the points that figures need."""

import numpy as np

from experiments.comparison import Curve
from simcore.core.result import Result
from simcore.metrics.distribution import cumulative_points
from simcore.metrics.metric import Latency


def curve_of(result: Result, latency: Latency) -> Curve | None:
    """The distribution over the requests of the measured window, as in the report; None without any.

    Gaps between tokens are those that the result has thinned out.
    """
    if latency.of_requests is None:
        points = result.token_gaps
    else:
        arrived = result.requests["arrival_s"] >= (result.summary["window"]["start_s"] or 0.0)
        points = cumulative_points(latency.of_requests(result.requests)[arrived])
    if not len(points["value_s"]):
        return None
    return Curve(np.asarray(points["value_s"], dtype=np.float64), np.asarray(points["share"], dtype=np.float64))
