"""The rate of a workload, and whether a run held what was asked of it."""

from collections.abc import Mapping
from typing import Any

from simcore.core.errors import InputError, Phrase

RATE, SCALE = "workload.arrivals.rate_per_s", "workload.rate_scale"


def rate_path(document: Mapping[str, Any]) -> str:
    """Where a scenario states its rate: of arrivals, or how many times as fast its trace is sent.

    Raises ``InputError`` for a workload without one rate.
    """
    workload = document.get("workload")
    workload = workload if isinstance(workload, Mapping) else {}
    arrivals = workload.get("arrivals")
    if isinstance(arrivals, Mapping) and arrivals.get("rate_per_s") is not None:
        return RATE
    if "trace" in workload:
        return SCALE
    raise InputError("workload", Phrase("without a rate of arrivals"), "one, or a trace, to raise in steps")


def rate_of(document: Mapping[str, Any]) -> float:
    """The rate that a scenario states; errors are those of ``rate_path``."""
    if rate_path(document) == RATE:
        return float(document["workload"]["arrivals"]["rate_per_s"])
    return float(document["workload"].get("rate_scale", 1.0))


def holds(summary: Mapping[str, Any]) -> bool:
    """Whether a run kept every objective; one without any requests to tell by did not."""
    objectives = (summary["slo"] or {}).values()
    return bool(objectives) and all(objective["met"] for objective in objectives)


def holds_or_keeps_up(summary: Mapping[str, Any]) -> bool:
    """Whether a run kept every objective or, where none is stated, served requests as fast as they came."""
    return holds(summary) if summary["slo"] else summary["throughput"]["keeps_up"] is not False
