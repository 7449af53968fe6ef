"""The ``workload:`` section of a scenario and the sections in it, as a user writes them."""

from simcore.workload.config.arrivals import (
    ClosedLoopArrivals,
    ConstantArrivals,
    GammaArrivals,
    OnOffArrivals,
    PoissonArrivals,
)
from simcore.workload.config.columns import LengthColumns, TraceColumns
from simcore.workload.config.lengths import (
    CorrelatedLengths,
    EmpiricalLengths,
    FixedLength,
    Length,
    LognormalLength,
    QuantilesLength,
    UniformLength,
    quantile_share,
)
from simcore.workload.config.section import LongerThanZero, Seconds
from simcore.workload.config.senders import SenderSection, TenantShare
from simcore.workload.config.workloads import StreamsWorkload, SyntheticWorkload, TraceWorkload, WorkloadConfig

__all__ = [
    "ClosedLoopArrivals",
    "ConstantArrivals",
    "CorrelatedLengths",
    "EmpiricalLengths",
    "FixedLength",
    "GammaArrivals",
    "Length",
    "LengthColumns",
    "LognormalLength",
    "LongerThanZero",
    "OnOffArrivals",
    "PoissonArrivals",
    "QuantilesLength",
    "Seconds",
    "SenderSection",
    "StreamsWorkload",
    "SyntheticWorkload",
    "TenantShare",
    "TraceColumns",
    "TraceWorkload",
    "UniformLength",
    "WorkloadConfig",
    "quantile_share",
]
