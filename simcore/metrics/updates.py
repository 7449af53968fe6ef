"""What updates did: the section ``updates`` of a summary."""

from collections.abc import Sequence
from typing import Any

from simcore.core.clock import to_s
from simcore.service.updates import UpdateRecord


def update_figures(updates: Sequence[UpdateRecord]) -> list[dict[str, Any]]:
    """Each update: from when to when, and the time of replicas that stood beside those that they replaced."""
    return [
        {
            "name": record.plan.name,
            "at_s": to_s(record.plan.at_ns),
            "replicas": len(record.plan.places),
            "updated_replicas": len(record.ready_ns),
            "ready_s": to_s(record.ready_ns[-1]) if record.ready_ns else None,
            "drained_s": to_s(record.drained_ns[-1]) if record.drained_ns else None,
            "extra_replica_s": to_s(record.extra_ns),
        }
        for record in updates
    ]
