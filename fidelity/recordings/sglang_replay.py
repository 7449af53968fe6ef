"""Our scheduler of turns on the requests of a recording of SGLang's."""

from collections import defaultdict
from collections.abc import Iterator

from fidelity.recordings.sglang import Config, SglangRecording, SglangRequest, Step
from policies.commitment.new_token_ratio import NewTokenRatio
from policies.preemption.fewest_generated import FewestGenerated
from simcore.core.clock import NS_PER_S
from simcore.core.content import BlockKeys, Run
from simcore.core.request import Request
from simcore.memory.page_memory import PageHolding, PageMemory
from simcore.memory.request_keys import ENDLESS
from simcore.scheduling.turns.queue import TurnQueue
from simcore.scheduling.turns.scheduler import TurnScheduler
from simcore.scheduling.turns.seat import Seat
from simcore.scheduling.turns.turn import Turn, TurnLimits

_FIRST_OUTPUT = 500_000_000
_MOST_OUTPUT = 100_000


def replay(recording: SglangRecording) -> Iterator[Step]:
    """What we decide in each pass; goes on for ever."""
    config = recording.config
    requests = {request.id: request for request in recording.requests}
    scheduler, ratio = _scheduler(config, requests)
    arrivals: dict[int, list[SglangRequest]] = defaultdict(list)
    for request in recording.requests:
        arrivals[request.arrive_step].append(request)
    last: Turn | None = None
    number = 0
    while True:
        for request in arrivals.pop(number, ()):
            scheduler.submit(_seat(request, config))
        evicted = scheduler.memory.evicted_tokens
        turn = scheduler.plan()
        planned_ratio = ratio.ratio
        result = last if config.overlap else turn
        finished = []
        if result is not None:
            ending = {seat.number for seat in result.seats if _got_last(seat, requests)}
            finished = scheduler.commit(result, ending)
        if turn is None and (last is None or not config.overlap) and scheduler.idle:
            ratio.idle()
        yield Step(
            mode=None if turn is None else turn.mode,
            reqs=_numbers(turn.seats if turn else ()),
            new=turn.new_tokens if turn and turn.mode != "decode" else [],
            prefix=turn.prefixes if turn and turn.mode != "decode" else [],
            admitted=_numbers(turn.admitted if turn else ()),
            chunked=scheduler.cut.number if scheduler.cut else None,
            waiting=_numbers(scheduler.prioritised),
            retracted=_numbers(scheduler.retracted),
            preempted=_numbers(scheduler.displaced),
            finished=_numbers(finished),
            free=scheduler.memory.free_tokens,
            evictable=scheduler.memory.tree.evictable,
            evicted=scheduler.memory.evicted_tokens - evicted,
            full=scheduler.full,
            ratio=round(planned_ratio, 9),
        )
        last = turn
        number += 1


def _numbers(seats: list[Seat] | tuple[Seat, ...]) -> list[int]:
    return [seat.number for seat in seats]


def _got_last(seat: Seat, requests: dict[int, SglangRequest]) -> bool:
    return seat.generated_tokens + 1 == requests[seat.number].output


def _runs(request: SglangRequest) -> list[Run]:
    return [*request.runs, Run(_FIRST_OUTPUT + _MOST_OUTPUT * request.id, ENDLESS)]


def _seat(request: SglangRequest, config: Config) -> Seat:
    urgent_first = config.schedule_low_priority_values_first
    made = Request(
        request.id,
        request.arrive_step * NS_PER_S,
        request.prompt_tokens,
        request.max_tokens,
        priority=request.priority if urgent_first else -request.priority,
    )
    keys = BlockKeys(_runs(request), config.page_size)
    return Seat(made, PageHolding(keys, request.prompt_tokens), request.ignore_eos)


def _scheduler(config: Config, requests: dict[int, SglangRequest]) -> tuple[TurnScheduler, NewTokenRatio]:
    memory = PageMemory(config.max_total_tokens, config.page_size, not config.disable_radix_cache)
    ratio = NewTokenRatio(config.schedule_conservativeness)
    prioritises = config.enable_priority_scheduling
    displaces = prioritises and not config.disable_priority_preemption
    limits = TurnLimits(
        config.max_running_requests,
        config.max_prefill_tokens,
        config.chunked_prefill_size if config.chunked_prefill_size > 0 else None,
        config.enable_mixed_chunk,
        config.overlap,
        config.priority_scheduling_preemption_threshold if displaces else None,
    )
    queue = TurnQueue(
        config.schedule_policy, memory, prioritises, lambda seat: BlockKeys(_runs(requests[seat.number]), 1)
    )
    retraction = FewestGenerated(config.retraction_policy == "priority")
    return TurnScheduler(limits, memory, queue, ratio, retraction), ratio
