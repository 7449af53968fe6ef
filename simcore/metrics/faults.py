"""What faults did: the section ``faults`` of a summary."""

from collections.abc import Sequence
from typing import Any

from simcore.core.clock import to_s
from simcore.service.fault_record import FaultRecord

_OUT = ("crash", "poison", "partition")
"""Faults for whose time a replica takes no requests."""


def fault_figures(faults: Sequence[FaultRecord], end_s: float) -> dict[str, Any]:
    """Each fault with the requests that it interrupted, and the time that replicas were out."""
    told = [
        {
            "name": record.name,
            "replica": record.replica,
            "at_s": to_s(record.at_ns),
            "until_s": None if record.until_ns is None else to_s(record.until_ns),
            "interrupted_requests": record.interrupted,
            "given_up_requests": record.given_up,
            "void": record.void,
        }
        for record in faults
    ]
    return {
        "events": told,
        "interrupted_requests": sum(record.interrupted for record in faults),
        "given_up_requests": sum(record.given_up for record in faults),
        "replica_down_s": sum(_down_s(record, end_s) for record in faults if record.name in _OUT),
    }


def _down_s(record: FaultRecord, end_s: float) -> float:
    if record.void:
        return 0.0
    up_s = end_s if record.until_ns is None else min(to_s(record.until_ns), end_s)
    return max(up_s - to_s(record.at_ns), 0.0)
