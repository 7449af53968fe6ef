"""Workloads: requests with their arrivals and lengths, made at random or read from a trace."""

from simcore.workload.batch import ClosedLoop, OpenLoop, RequestBatch
from simcore.workload.building import build_workload
from simcore.workload.config import SyntheticWorkload, TraceWorkload, WorkloadConfig

__all__ = [
    "ClosedLoop",
    "OpenLoop",
    "RequestBatch",
    "SyntheticWorkload",
    "TraceWorkload",
    "WorkloadConfig",
    "build_workload",
]
