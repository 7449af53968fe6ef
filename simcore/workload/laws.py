"""From the sections of a ``workload:`` to the laws by which its requests are drawn."""

from pathlib import Path

import numpy as np

from simcore.core.errors import InputError
from simcore.workload import arrivals as processes
from simcore.workload import durations, lengths, pairs, prompts, session_shapes
from simcore.workload.batch import NO_OUTPUT_LIMIT, NO_TIMEOUT_NS
from simcore.workload.config import (
    AtOnceArrivals,
    ChatSession,
    ConstantArrivals,
    CorrelatedLengths,
    DailyArrivals,
    Duration,
    EmpiricalLengths,
    ExponentialTime,
    FixedLength,
    FixedTime,
    GammaArrivals,
    Length,
    LengthColumns,
    ListedLengths,
    LognormalLength,
    LognormalTime,
    OnOffArrivals,
    PiecewiseArrivals,
    PoissonArrivals,
    PromptPart,
    QuantilesLength,
    SenderSection,
    SessionConfig,
    SharedTextPart,
    SyntheticWorkload,
    TenantShare,
    UniformLength,
    UniformTime,
    UniqueTextPart,
    longest,
    quantile_share,
)
from simcore.workload.senders import Sender, Senders
from simcore.workload.traces import Columns, read_trace
from simcore.workload.traces.formats import assumed_of

OpenLoopArrivals = (
    PoissonArrivals
    | GammaArrivals
    | ConstantArrivals
    | OnOffArrivals
    | AtOnceArrivals
    | PiecewiseArrivals
    | DailyArrivals
)
_HOURS = 24


def senders(config: SenderSection) -> Senders | None:
    """Who sends, or None where nothing is said of it."""
    if config.tenants is None:
        sender = _sender(config.tenant, config)
        return None if sender == Sender() else Senders((sender,), (1.0,))
    tenants = tuple(_sender(tenant.name, tenant) for tenant in config.tenants)
    return Senders(tenants, tuple(tenant.share for tenant in config.tenants))


def _sender(tenant: str, stated: SenderSection | TenantShare) -> Sender:
    first_token_timeout_ns, timeout_ns = (
        NO_TIMEOUT_NS if seconds is None else round(seconds * 1e9)
        for seconds in (stated.first_token_timeout_s, stated.timeout_s)
    )
    limit = stated.max_output_tokens or NO_OUTPUT_LIMIT
    return Sender(tenant, stated.priority, limit, first_token_timeout_ns, timeout_ns)


def arrival_process(config: OpenLoopArrivals) -> processes.ArrivalProcess:
    """When requests arrive."""
    match config:
        case PoissonArrivals():
            return processes.Poisson(config.rate_per_s)
        case GammaArrivals():
            return processes.Gamma(config.rate_per_s, config.cv)
        case ConstantArrivals():
            return processes.Constant(config.rate_per_s)
        case OnOffArrivals():
            return processes.OnOff(config.on_rate_per_s, config.off_rate_per_s, config.on_s, config.off_s)
        case AtOnceArrivals():
            return processes.AtOnce()
        case PiecewiseArrivals():
            starts, rates = zip(*((rate.from_s, rate.rate_per_s) for rate in config.rates), strict=True)
            return processes.Piecewise(starts, rates, config.period_s)
        case DailyArrivals():
            hours = [(config.start_hour + hour) % _HOURS for hour in range(_HOURS)]
            starts = tuple(hour * config.day_s / _HOURS for hour in range(_HOURS))
            return processes.Piecewise(starts, tuple(config.rates_per_s[hour] for hour in hours), config.day_s)


def length_pairs(config: SyntheticWorkload, base_dir: Path) -> pairs.LengthPairs:
    """How long prompts and outputs are; a file of lengths is looked up from ``base_dir``."""
    match config.lengths:
        case EmpiricalLengths() as measured:
            path = base_dir / measured.file
            columns = trace_columns(measured.columns)
            trace = read_trace(
                path, measured.format, columns, sort=measured.order == "random", skip_failed=measured.skip_failed
            )
            kind = pairs.EmpiricalPairs if measured.order == "random" else pairs.ListedPairs
            return kind(trace.prompt_tokens, trace.output_tokens, assumed_of(path, trace.format))
        case ListedLengths() as listed:
            prompts_and_outputs = np.array(listed.tokens, dtype=np.int64)
            return pairs.ListedPairs(prompts_and_outputs[:, 0], prompts_and_outputs[:, 1])
        case CorrelatedLengths() as tied:
            prompt, output = length(tied.prompt_tokens), length(tied.output_tokens)
            return pairs.CorrelatedPairs(prompt, output, tied.rank_correlation)
    if config.prompt_tokens is None or config.output_tokens is None:
        raise InputError("workload.lengths", None, "prompt_tokens and output_tokens, or lengths")
    return pairs.IndependentPairs(length(config.prompt_tokens), length(config.output_tokens))


def length(config: Length) -> lengths.LengthDistribution:
    """A number of tokens, or of other things."""
    match config:
        case FixedLength():
            return lengths.Fixed(config.tokens)
        case UniformLength():
            return lengths.Uniform(config.low, config.high)
        case LognormalLength():
            return lengths.Lognormal(config.median, config.sigma, config.min, config.max)
        case QuantilesLength():
            shares = tuple(quantile_share(key) for key in config.tokens)
            return lengths.Quantiles(shares, tuple(config.tokens.values()))


def duration(config: Duration) -> durations.DurationDistribution:
    """How long something takes."""
    match config:
        case FixedTime():
            return durations.FixedTime(config.time_s)
        case UniformTime():
            return durations.UniformTime(config.low_s, config.high_s)
        case ExponentialTime():
            return durations.ExponentialTime(config.mean_s)
        case LognormalTime():
            return durations.LognormalTime(config.median_s, config.sigma, config.max_s)


def prompts_of(config: SyntheticWorkload) -> prompts.Prompts | None:
    """What prompts are made of, or None where nothing is said of it."""
    if config.prefix is None and config.session is None:
        return None
    tenants = len(config.tenants or ()) or 1
    return prompts.Prompts(tuple(_part(part, tenants) for part in config.prefix or ()))


def _part(config: PromptPart, tenants: int) -> prompts.Part:
    if isinstance(config, UniqueTextPart):
        return prompts.UniqueText(length(config.tokens))
    kind = prompts.SharedTexts if isinstance(config, SharedTextPart) else prompts.ExampleLists
    return kind(
        among=config.among,
        exponent=config.zipf,
        count=length(config.count),
        most=longest(config.count),
        tokens=length(config.tokens),
        tenants=tenants if config.per_tenant else 1,
    )


def session_shape(config: SessionConfig) -> session_shapes.SessionShape:
    """How the requests of a session follow each other."""
    if isinstance(config, ChatSession):
        return session_shapes.Chat(length(config.turns), longest(config.turns))
    return session_shapes.AgentTree(length(config.fan_out), config.depth, config.join, config.most_requests)


def trace_columns(config: LengthColumns | None) -> Columns | None:
    """The columns of a trace, None where they are those of its format."""
    return None if config is None else Columns(**config.model_dump())
