"""Workloads: requests with their arrivals and lengths, made at random or read from a trace."""

from simcore.workload.batch import NO_OUTPUT_LIMIT, ClosedLoop, OpenLoop, RequestBatch
from simcore.workload.building import (
    Workload,
    build_workload,
    first_requests,
    has_contents,
    mean_lengths,
    samples_per_request,
)
from simcore.workload.config import StreamsWorkload, SyntheticWorkload, TraceWorkload, WorkloadConfig
from simcore.workload.sessions import Sessions

__all__ = [
    "NO_OUTPUT_LIMIT",
    "ClosedLoop",
    "OpenLoop",
    "RequestBatch",
    "Sessions",
    "StreamsWorkload",
    "SyntheticWorkload",
    "TraceWorkload",
    "Workload",
    "WorkloadConfig",
    "build_workload",
    "first_requests",
    "has_contents",
    "mean_lengths",
    "samples_per_request",
]
