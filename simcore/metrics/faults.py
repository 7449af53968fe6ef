"""What crashes did: the section ``faults`` of a summary."""

from collections.abc import Sequence
from typing import Any

from simcore.core.clock import to_s
from simcore.service.crashes import CrashRecord


def fault_figures(crashes: Sequence[CrashRecord], end_s: float) -> dict[str, Any]:
    """Each crash with the requests that it interrupted, and the time that replicas were down."""
    told = [
        {
            "name": "crash",
            "replica": record.plan.place,
            "at_s": to_s(record.plan.at_ns),
            "restart_s": None if record.plan.restart_ns is None else to_s(record.plan.restart_ns),
            "interrupted_requests": record.interrupted,
            "given_up_requests": record.given_up,
            "void": record.void,
        }
        for record in crashes
    ]
    interrupted = sum(record.interrupted for record in crashes)
    given_up = sum(record.given_up for record in crashes)
    return {
        "events": told,
        "interrupted_requests": interrupted,
        "given_up_requests": given_up,
        "replica_down_s": sum(_down_s(record, end_s) for record in crashes),
    }


def _down_s(record: CrashRecord, end_s: float) -> float:
    if record.void:
        return 0.0
    up_s = end_s if record.plan.restart_ns is None else min(to_s(record.plan.restart_ns), end_s)
    return max(up_s - to_s(record.plan.at_ns), 0.0)
