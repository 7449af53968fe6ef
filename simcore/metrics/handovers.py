"""What moving requests between pools took."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from simcore.core.clock import NS_PER_S
from simcore.core.result import Columns
from simcore.metrics.statistics import brief
from simcore.recording.handover_log import HandoverRow


def with_handovers(requests: Columns, rows: Sequence[HandoverRow]) -> Columns:
    """The table of requests with where each was prefilled, when it had room to decode, and when its KV was there."""
    place = {number: index for index, number in enumerate(requests["request_id"].tolist())}
    found = [(place[row.number], row) for row in rows if row.number in place]
    prefill_replica = requests["replica"].copy()
    times = {name: np.full(len(place), np.nan) for name in ("room_s", "landed_s")}
    for index, row in found:
        prefill_replica[index] = row.source
        times["room_s"][index] = max(row.room_ns, row.prefilled_ns) / NS_PER_S
        times["landed_s"][index] = row.landed_ns / NS_PER_S
    return {**requests, "prefill_replica": prefill_replica, **times}


def handover_figures(requests: Columns, rows: Sequence[HandoverRow], warmup_s: float) -> dict[str, Any]:
    """The section ``handover`` of a summary: counts of the whole run, times of requests that arrived after warm-up.

    A request waits for room from its first token on, then for its KV, of which some may have come before.
    """
    arrived = requests["arrival_s"] >= warmup_s
    return {
        "requests": len(rows),
        "transfers": sum(row.attempts for row in rows),
        "bytes": sum(row.size_bytes for row in rows),
        "recomputed": sum(row.lost for row in rows),
        "room_wait_s": brief((requests["room_s"] - requests["first_token_s"])[arrived]),
        "transfer_wait_s": brief((requests["landed_s"] - requests["room_s"])[arrived]),
    }
