"""From the ``workload:`` section of a scenario to the requests it stands for."""

from pathlib import Path

import numpy as np

from simcore.errors import InputError
from simcore.workload import arrivals, lengths, pairs
from simcore.workload.batch import ClosedLoop, OpenLoop, RequestBatch
from simcore.workload.config import (
    ClosedLoopArrivals,
    ConstantArrivals,
    CorrelatedLengths,
    EmpiricalLengths,
    FixedLength,
    GammaArrivals,
    Length,
    LognormalLength,
    OnOffArrivals,
    PoissonArrivals,
    QuantilesLength,
    SyntheticWorkload,
    TraceColumns,
    TraceWorkload,
    UniformLength,
    WorkloadConfig,
    quantile_share,
)
from simcore.workload.recorded import replay
from simcore.workload.synthetic import SyntheticOpenLoop
from simcore.workload.traces import Columns, read_trace

OpenLoopArrivals = PoissonArrivals | GammaArrivals | ConstantArrivals | OnOffArrivals


def build_workload(config: WorkloadConfig, seed: int, base_dir: Path) -> OpenLoop | ClosedLoop:
    """The requests that ``config`` describes; files are looked up from ``base_dir``, the scenario's folder.

    The same configuration and seed give the same requests, to the bit. A replayed trace also has ``notices``: what
    was left out of it or reordered. Raises FileError for a file that cannot be read, InputError for a duration without
    a request.
    """
    if isinstance(config, TraceWorkload):
        return replay(
            base_dir / config.trace,
            config.format,
            _columns(config.columns),
            rate_scale=config.rate_scale,
            window_s=config.window_s,
            requests=config.requests,
            sort=config.sort,
            skip_failed=config.skip_failed,
        )
    length_pairs = _length_pairs(config, base_dir)
    if isinstance(config.arrivals, ClosedLoopArrivals):
        # The configuration is valid, so closed-loop arrivals come with a number of requests.
        return _closed_loop(config.arrivals, config.requests or 0, length_pairs, seed)
    return _open_loop(config, config.arrivals, length_pairs, seed)


def _closed_loop(config: ClosedLoopArrivals, requests: int, length_pairs: pairs.LengthPairs, seed: int) -> ClosedLoop:
    prompt_tokens, output_tokens = length_pairs.start(seed)(requests)
    all_requests = RequestBatch(np.zeros(requests, dtype=np.int64), prompt_tokens, output_tokens)
    return ClosedLoop(config.concurrency, round(config.think_time_s * 1e9), all_requests)


def _open_loop(
    config: SyntheticWorkload, process: OpenLoopArrivals, length_pairs: pairs.LengthPairs, seed: int
) -> SyntheticOpenLoop:
    duration_ns = None if config.duration_s is None else round(config.duration_s * 1e9)
    workload = SyntheticOpenLoop(_arrivals(process), length_pairs, seed, config.requests, duration_ns)
    if next(workload.batches(), None) is None:
        raise InputError("workload.duration_s", config.duration_s, "long enough for a request to arrive")
    return workload


def _arrivals(config: OpenLoopArrivals) -> arrivals.ArrivalProcess:
    match config:
        case PoissonArrivals():
            return arrivals.Poisson(config.rate_per_s)
        case GammaArrivals():
            return arrivals.Gamma(config.rate_per_s, config.cv)
        case ConstantArrivals():
            return arrivals.Constant(config.rate_per_s)
        case OnOffArrivals():
            return arrivals.OnOff(config.on_rate_per_s, config.off_rate_per_s, config.on_s, config.off_s)


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


def _columns(config: TraceColumns | None) -> Columns | None:
    if config is None:
        return None
    return Columns(config.arrival, config.arrival_unit, config.prompt_tokens, config.output_tokens)
