"""From the ``workload:`` section of a scenario to the requests it stands for."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from simcore.errors import InputError
from simcore.workload import arrivals as processes
from simcore.workload import lengths, pairs
from simcore.workload.batch import NO_OUTPUT_LIMIT, ClosedLoop, OpenLoop, RequestBatch
from simcore.workload.config import (
    ClosedLoopArrivals,
    ConstantArrivals,
    CorrelatedLengths,
    EmpiricalLengths,
    FixedLength,
    GammaArrivals,
    Length,
    LengthColumns,
    LognormalLength,
    OnOffArrivals,
    PoissonArrivals,
    QuantilesLength,
    SenderSection,
    StreamsWorkload,
    SyntheticWorkload,
    TraceWorkload,
    UniformLength,
    WorkloadConfig,
    quantile_share,
)
from simcore.workload.in_memory import InMemoryOpenLoop, merge
from simcore.workload.recorded import replay
from simcore.workload.senders import LabelledOpenLoop, Sender, Senders
from simcore.workload.streams import seed_of_part
from simcore.workload.synthetic import SyntheticOpenLoop
from simcore.workload.traces import Columns, read_trace

OpenLoopArrivals = PoissonArrivals | GammaArrivals | ConstantArrivals | OnOffArrivals


def build_workload(config: WorkloadConfig, seed: int, base_dir: Path) -> OpenLoop | ClosedLoop:
    """The requests that ``config`` describes; files are looked up from ``base_dir``, the scenario's folder.

    The same configuration and seed give the same requests, to the bit. A trace, and streams, also have ``notices``:
    what was left out, reordered or shortened. Raises FileError for a file that cannot be read, InputError for a
    duration without a request and for a closed loop among streams.
    """
    if isinstance(config, StreamsWorkload):
        return _merged_streams(config, seed, base_dir)
    if isinstance(config, TraceWorkload):
        return _recorded(config, seed, base_dir)
    if isinstance(config.arrivals, ClosedLoopArrivals):
        return _closed_loop(config, config.arrivals, seed, base_dir)
    return _open_loop(config, config.arrivals, seed, base_dir)


def _merged_streams(config: StreamsWorkload, seed: int, base_dir: Path) -> InMemoryOpenLoop:
    """All requests in order of arrival.

    What a stream draws depends on its tenant and on how many streams above it have the same one, so streams of other
    tenants come, go and change places without changing it.
    """
    same_tenant: Counter[str] = Counter()
    parts: list[RequestBatch] = []
    notices: list[str] = []
    for number, stream in enumerate(config.streams):
        own_seed = seed_of_part(seed, f"stream {same_tenant[stream.tenant]} of {stream.tenant}")
        same_tenant[stream.tenant] += 1
        try:
            workload = build_workload(stream, own_seed, base_dir)
            if isinstance(workload, ClosedLoop):
                expected = "arrivals that do not wait for answers, as a closed loop cannot be one of several streams"
                raise InputError("workload.arrivals.name", "closed-loop", expected)
            parts.extend(workload.batches())
        except InputError as error:
            field = f"workload.streams.{number}{error.field.removeprefix('workload')}"
            raise InputError(field, error.value, error.expected, error.nearest) from None
        notices.extend(getattr(workload, "notices", ()))
    return InMemoryOpenLoop(merge(parts), tuple(notices))


def _recorded(config: TraceWorkload, seed: int, base_dir: Path) -> InMemoryOpenLoop:
    recorded = replay(
        base_dir / config.trace,
        config.format,
        _columns(config.columns),
        rate_scale=config.rate_scale,
        window_s=config.window_s,
        requests=config.requests,
        sort=config.sort,
        skip_failed=config.skip_failed,
    )
    senders = _senders(config)
    if senders is None:
        return recorded
    return replace(recorded, requests=senders.start(seed)(recorded.requests))


def _closed_loop(config: SyntheticWorkload, arrivals: ClosedLoopArrivals, seed: int, base_dir: Path) -> ClosedLoop:
    # The configuration is valid, so closed-loop arrivals come with a number of requests.
    count = config.requests or 0
    prompt_tokens, output_tokens = _length_pairs(config, base_dir).start(seed)(count)
    requests = RequestBatch(np.zeros(count, dtype=np.int64), prompt_tokens, output_tokens)
    senders = _senders(config)
    if senders is not None:
        requests = senders.start(seed)(requests)
    return ClosedLoop(arrivals.concurrency, round(arrivals.think_time_s * 1e9), requests)


def _open_loop(config: SyntheticWorkload, process: OpenLoopArrivals, seed: int, base_dir: Path) -> OpenLoop:
    duration_ns = None if config.duration_s is None else round(config.duration_s * 1e9)
    length_pairs = _length_pairs(config, base_dir)
    workload = SyntheticOpenLoop(_arrivals(process), length_pairs, seed, config.requests, duration_ns)
    if next(workload.batches(), None) is None:
        raise InputError("workload.duration_s", config.duration_s, "long enough for a request to arrive")
    senders = _senders(config)
    return workload if senders is None else LabelledOpenLoop(workload, senders, seed)


def _senders(config: SenderSection) -> Senders | None:
    """Who sends, or None where nothing is said of it."""
    limit = config.max_output_tokens or NO_OUTPUT_LIMIT
    if config.tenants is None:
        sender = Sender(config.tenant, config.priority, limit)
        return None if sender == Sender() else Senders((sender,), (1.0,))
    tenants = tuple(
        Sender(tenant.name, tenant.priority, tenant.max_output_tokens or NO_OUTPUT_LIMIT) for tenant in config.tenants
    )
    return Senders(tenants, tuple(tenant.share for tenant in config.tenants))


def _arrivals(config: OpenLoopArrivals) -> processes.ArrivalProcess:
    match config:
        case PoissonArrivals():
            return processes.Poisson(config.rate_per_s)
        case GammaArrivals():
            return processes.Gamma(config.rate_per_s, config.cv)
        case ConstantArrivals():
            return processes.Constant(config.rate_per_s)
        case OnOffArrivals():
            return processes.OnOff(config.on_rate_per_s, config.off_rate_per_s, config.on_s, config.off_s)


def _length_pairs(config: SyntheticWorkload, base_dir: Path) -> pairs.LengthPairs:
    match config.lengths:
        case EmpiricalLengths() as measured:
            path = base_dir / measured.file
            columns = _columns(measured.columns)
            trace = read_trace(path, measured.format, columns, sort=True, skip_failed=measured.skip_failed)
            return pairs.EmpiricalPairs(trace.prompt_tokens, trace.output_tokens)
        case CorrelatedLengths() as tied:
            prompt, output = _length(tied.prompt_tokens), _length(tied.output_tokens)
            return pairs.CorrelatedPairs(prompt, output, tied.rank_correlation)
    if config.prompt_tokens is None or config.output_tokens is None:
        raise InputError("workload.lengths", None, "prompt_tokens and output_tokens, or lengths")
    return pairs.IndependentPairs(_length(config.prompt_tokens), _length(config.output_tokens))


def _length(config: Length) -> lengths.LengthDistribution:
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


def _columns(config: LengthColumns | None) -> Columns | None:
    return None if config is None else Columns(**config.model_dump())
