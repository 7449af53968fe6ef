"""From the ``workload:`` section of a scenario to the requests it stands for."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from simcore.core.errors import InputError
from simcore.workload import laws
from simcore.workload.batch import ClosedLoop, OpenLoop, RequestBatch
from simcore.workload.config import (
    ClosedLoopArrivals,
    SessionConfig,
    StreamsWorkload,
    SyntheticWorkload,
    TraceWorkload,
    WorkloadConfig,
)
from simcore.workload.config.section import MAX_REQUESTS
from simcore.workload.in_memory import InMemoryOpenLoop, concatenate, merge, order_of_arrival
from simcore.workload.lengths import Fixed
from simcore.workload.pairs import IndependentPairs, LengthPairs
from simcore.workload.prompts import Prompts
from simcore.workload.recorded import replay
from simcore.workload.samples import Samples
from simcore.workload.sessions import FollowUps, Sessions, follow_ups_of_all
from simcore.workload.streams import seed_of_part
from simcore.workload.synthetic import SyntheticOpenLoop
from simcore.workload.synthetic_sessions import SyntheticSessions
from simcore.workload.transformed import TransformedOpenLoop

Workload = OpenLoop | ClosedLoop | Sessions


def build_workload(config: WorkloadConfig, seed: int, base_dir: Path) -> Workload:
    """The requests that ``config`` describes; files are looked up from ``base_dir``, the scenario's folder.

    The same configuration and seed give the same requests, to the bit. A trace, and streams, also have ``notices``:
    what was left out, reordered or shortened. Raises FileError for a file that cannot be read, InputError for a
    duration without a request or with too many, and for a closed loop among streams.
    """
    if isinstance(config, StreamsWorkload):
        return _merged_streams(config, seed, base_dir)
    if isinstance(config, TraceWorkload):
        return _recorded(config, seed, base_dir)
    if config.session is not None:
        return _sessions(config, config.session, seed, base_dir)
    if isinstance(config.arrivals, ClosedLoopArrivals):
        return _closed_loop(config, config.arrivals, seed, base_dir)
    return _open_loop(config, seed, base_dir)


def _merged_streams(config: StreamsWorkload, seed: int, base_dir: Path) -> InMemoryOpenLoop | Sessions:
    """All requests in order of arrival, those of sessions when these begin.

    What a stream draws depends on its tenant and on how many streams above it have the same one, so streams of other
    tenants come, go and change places without changing it.
    """
    same_tenant: Counter[str] = Counter()
    parts: list[RequestBatch] = []
    follow_ups: list[FollowUps] = []
    notices: list[str] = []
    has_sessions = False
    for number, stream in enumerate(config.streams):
        own_seed = seed_of_part(seed, f"stream {same_tenant[stream.tenant]} of {stream.tenant}")
        same_tenant[stream.tenant] += 1
        try:
            workload = build_workload(stream, own_seed, base_dir)
            if isinstance(workload, ClosedLoop) or (isinstance(workload, Sessions) and workload.concurrency):
                expected = "arrivals that do not wait for answers, as a closed loop cannot be one of several streams"
                raise InputError("workload.arrivals.name", "closed-loop", expected)
            if (samples := samples_per_request(workload)) > 1:
                raise InputError("workload.samples", samples, "1 in each of several streams")
            if isinstance(workload, Sessions):
                has_sessions = True
                parts.append(workload.requests)
                follow_ups.append(workload.follow_ups)
            else:
                parts.append(concatenate(list(workload.batches())))
                follow_ups.append(FollowUps.none(len(parts[-1])))
        except InputError as error:
            field = f"workload.streams.{number}{error.field.removeprefix('workload')}"
            raise InputError(field, error.value, error.expected, error.nearest) from None
        notices.extend(getattr(workload, "notices", ()))
    if not has_sessions:
        return InMemoryOpenLoop(merge(parts), tuple(notices))
    in_order = follow_ups_of_all(follow_ups).in_order(order_of_arrival(parts))
    return Sessions(merge(parts), in_order, notices=tuple(notices))


def _recorded(config: TraceWorkload, seed: int, base_dir: Path) -> InMemoryOpenLoop | Sessions:
    recorded = replay(
        base_dir / config.trace,
        config.format,
        laws.trace_columns(config.columns),
        rate_scale=config.rate_scale,
        window_s=config.window_s,
        requests=config.requests,
        sort=config.sort,
        skip_failed=config.skip_failed,
        block_tokens=config.block_tokens,
        resample_seed=seed if config.resample else None,
        turns_wait=config.turns == "closed-loop",
    )
    senders = laws.senders(config)
    if senders is None:
        return recorded
    return replace(recorded, requests=senders.start(seed)(recorded.requests))


def _closed_loop(config: SyntheticWorkload, arrivals: ClosedLoopArrivals, seed: int, base_dir: Path) -> ClosedLoop:
    # The configuration is valid, so closed-loop arrivals come with a number of requests.
    count = config.requests or 0
    lengths = laws.length_pairs(config, base_dir)
    prompt_tokens, output_tokens = lengths.start(seed)(count)
    requests = RequestBatch(np.zeros(count, dtype=np.int64), prompt_tokens, output_tokens)
    for step in (laws.senders(config), laws.prompts_of(config)):
        if step is not None:
            requests = step.start(seed)(requests)
    return ClosedLoop(arrivals.concurrency, _ns(arrivals.think_time_s), requests, lengths.notices)


def _open_loop(config: SyntheticWorkload, seed: int, base_dir: Path) -> OpenLoop:
    workload = _arriving(config, seed, config.requests, laws.length_pairs(config, base_dir))
    steps = tuple(step for step in (laws.senders(config), laws.prompts_of(config)) if step is not None)
    if config.samples > 1 and config.output_tokens is not None:
        written = steps if config.prefix else (*steps, Prompts(()))
        sampled = Samples(config.samples, laws.length(config.output_tokens))
        return TransformedOpenLoop(workload, (*written, sampled), seed, config.samples)
    return TransformedOpenLoop(workload, steps, seed) if steps else workload


def _arriving(config: SyntheticWorkload, seed: int, requests: int | None, lengths: LengthPairs) -> SyntheticOpenLoop:
    """Requests, or the beginnings of sessions, as they arrive: so many, or until the duration is over."""
    if isinstance(config.arrivals, ClosedLoopArrivals):
        raise TypeError("a closed loop has no arrivals of its own")
    duration_ns = None if config.duration_s is None else _ns(config.duration_s)
    process = laws.arrival_process(config.arrivals)
    if config.duration_s is not None and process.seconds_at(np.array([float(MAX_REQUESTS)]))[0] < config.duration_s:
        expected = f"so short that at most {MAX_REQUESTS:,} requests arrive"
        raise InputError("workload.duration_s", config.duration_s, expected)
    workload = SyntheticOpenLoop(process, lengths, seed, requests, duration_ns)
    if next(workload.batches(), None) is None:
        raise InputError("workload.duration_s", config.duration_s, "long enough for a request to arrive")
    return workload


def _sessions(config: SyntheticWorkload, session: SessionConfig, seed: int, base_dir: Path) -> Sessions:
    made = SyntheticSessions(
        laws.session_shape(session),
        laws.duration(session.think_time_s),
        laws.length_pairs(config, base_dir),
        laws.prompts_of(config) or Prompts(()),
        laws.senders(config),
        seed,
    )
    shape = None if config.requests is None else made.shapes(requests=config.requests)
    sessions = None if shape is None else int(shape.session[-1]) + 1
    if isinstance(config.arrivals, ClosedLoopArrivals):
        none = np.zeros(sessions or 0, dtype=np.int64)
        beginnings = RequestBatch(none, none + 1, none + 1)
    else:
        arriving = _arriving(config, seed, sessions, IndependentPairs(Fixed(1), Fixed(1)))
        beginnings = concatenate(list(arriving.batches()))
    requests, follow_ups = made.requests(shape or made.shapes(sessions=len(beginnings)), beginnings)
    if isinstance(config.arrivals, ClosedLoopArrivals):
        return Sessions(requests, follow_ups, config.arrivals.concurrency, _ns(config.arrivals.think_time_s))
    return Sessions(requests, follow_ups)


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def has_contents(workload: Workload) -> bool:
    """Whether a workload says what its requests contain, so that some may have tokens in common."""
    requests = workload.requests if isinstance(workload, ClosedLoop | Sessions) else next(workload.batches())
    return requests.contents is not None


def samples_per_request(workload: Workload) -> int:
    """How many successive sequences of a workload are the samples of one request."""
    return workload.samples if isinstance(workload, TransformedOpenLoop) else 1


def first_requests(workload: Workload, count: int) -> RequestBatch:
    """The first ``count`` requests of a workload, or all of them if there are fewer."""
    if isinstance(workload, ClosedLoop | Sessions):
        return workload.requests.at(slice(0, count))
    batches: list[RequestBatch] = []
    for batch in workload.batches():
        batches.append(batch)
        if sum(map(len, batches)) >= count:
            break
    return concatenate(batches).at(slice(0, count))


def mean_lengths(workload: Workload) -> tuple[int, int]:
    """Mean tokens of the workload's prompts and of its outputs, rounded, at least 1."""
    batches = [workload.requests] if isinstance(workload, ClosedLoop | Sessions) else list(workload.batches())
    prompts = np.concatenate([batch.prompt_tokens for batch in batches])
    outputs = np.concatenate([batch.output_tokens for batch in batches])
    if not len(prompts):
        return 1, 1
    return max(round(float(prompts.mean())), 1), max(round(float(outputs.mean())), 1)
