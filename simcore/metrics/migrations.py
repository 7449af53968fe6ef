"""What moving running requests took."""

from typing import Any

import numpy as np

from simcore.core.clock import NS_PER_S
from simcore.metrics.statistics import brief
from simcore.recording.migration_log import MigrationLog


def migration_figures(log: MigrationLog) -> dict[str, Any]:
    """The section ``migration`` of a summary, of the whole run.

    A request is copied from ``start_ns`` on, and gets no tokens from ``stop_ns`` to ``landed_ns``.
    """
    times = np.array([(row.start_ns, row.stop_ns, row.landed_ns) for row in log.rows], dtype=np.float64).reshape(-1, 3)
    return {
        "moves": len(log.rows),
        "requests": len({row.number for row in log.rows}),
        "copies": sum(row.copies for row in log.rows),
        "bytes": sum(row.size_bytes for row in log.rows),
        "called_off_by_reason": dict(sorted(log.called_off.items())),
        "copy_s": brief((times[:, 1] - times[:, 0]) / NS_PER_S),
        "stop_s": brief((times[:, 2] - times[:, 1]) / NS_PER_S),
    }
