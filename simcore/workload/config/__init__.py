"""The ``workload:`` section of a scenario and the sections in it, as a user writes them."""

from simcore.workload.config.arrivals import (
    AtOnceArrivals,
    ClosedLoopArrivals,
    ConstantArrivals,
    DailyArrivals,
    GammaArrivals,
    OnOffArrivals,
    PiecewiseArrivals,
    PoissonArrivals,
)
from simcore.workload.config.columns import LengthColumns, TraceColumns
from simcore.workload.config.durations import Duration, ExponentialTime, FixedTime, LognormalTime, UniformTime
from simcore.workload.config.lengths import (
    CorrelatedLengths,
    EmpiricalLengths,
    FixedLength,
    Length,
    ListedLengths,
    LognormalLength,
    QuantilesLength,
    UniformLength,
    longest,
    quantile_share,
)
from simcore.workload.config.prompts import ExamplesPart, PromptPart, SharedTextPart, UniqueTextPart
from simcore.workload.config.section import LongerThanZero, Seconds
from simcore.workload.config.senders import SenderSection, TenantShare
from simcore.workload.config.sessions import AgentsSession, ChatSession, SessionConfig
from simcore.workload.config.workloads import StreamsWorkload, SyntheticWorkload, TraceWorkload, WorkloadConfig

__all__ = [
    "AgentsSession",
    "AtOnceArrivals",
    "ChatSession",
    "ClosedLoopArrivals",
    "ConstantArrivals",
    "CorrelatedLengths",
    "DailyArrivals",
    "Duration",
    "EmpiricalLengths",
    "ExamplesPart",
    "ExponentialTime",
    "FixedLength",
    "FixedTime",
    "GammaArrivals",
    "Length",
    "LengthColumns",
    "ListedLengths",
    "LognormalLength",
    "LognormalTime",
    "LongerThanZero",
    "OnOffArrivals",
    "PiecewiseArrivals",
    "PoissonArrivals",
    "PromptPart",
    "QuantilesLength",
    "Seconds",
    "SenderSection",
    "SessionConfig",
    "SharedTextPart",
    "StreamsWorkload",
    "SyntheticWorkload",
    "TenantShare",
    "TraceColumns",
    "TraceWorkload",
    "UniformLength",
    "UniformTime",
    "UniqueTextPart",
    "WorkloadConfig",
    "longest",
    "quantile_share",
]
