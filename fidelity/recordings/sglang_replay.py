"""Our scheduler, with batching in turns, on the requests of a recording of SGLang's."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from fidelity.recordings.sglang import Config, SglangRecording, SglangRequest, Step
from policies.batching.prefill_turns import PrefillTurns
from policies.commitment.new_token_ratio import NewTokenRatio
from policies.ordering import Ordering
from policies.ordering.as_queued import AsQueued
from policies.ordering.depth_first import DepthFirst
from policies.ordering.longest_output import LongestOutputFirst
from policies.ordering.longest_prefix import LongestPrefixFirst
from policies.ordering.two_level import TwoLevel
from policies.preemption.fewest_generated import FewestGenerated
from simcore.core.clock import NS_PER_S
from simcore.core.content import Content
from simcore.core.request import Request
from simcore.memory.radix_counter import KVRadixCounter
from simcore.scheduling.config import SchedulerConfig
from simcore.scheduling.step import StepResult
from simcore.scheduling.turns.scheduler import TurnScheduler
from simcore.scheduling.turns.seat import Seat
from simcore.scheduling.turns.turn import Turn

_FIRST_OUTPUT = 500_000_000
_MOST_OUTPUT = 100_000
_ORDERINGS: dict[str, type[Ordering]] = {
    "fcfs": AsQueued,
    "lof": LongestOutputFirst,
    "lpm": LongestPrefixFirst,
    "dfs-weight": DepthFirst,
}


def replay(recording: SglangRecording) -> Iterator[Step]:
    """What we decide in each pass; goes on for ever."""
    config = recording.config
    output_tokens = {request.id: request.output for request in recording.requests}
    commitment = NewTokenRatio(config.schedule_conservativeness)
    scheduler = _scheduler(config, commitment)
    batch, page = scheduler.batch, config.page_size
    memory = batch.memory
    arrivals: dict[int, list[Request]] = defaultdict(list)
    for recorded in recording.requests:
        arrivals[recorded.arrive_step].append(_request(recorded, config))
    number = 0
    while True:
        for request in arrivals.pop(number, ()):
            scheduler.submit(request, number * NS_PER_S)
        evicted = memory.evicted_blocks
        plan = scheduler.plan(number * NS_PER_S)
        turn, ratio = batch.turn, commitment.ratio
        said = _said(turn)
        finished: Sequence[Request] = plan.released
        if turn is not None:
            last = [seat.request for seat in _sampled(turn) if _gets_last(seat, output_tokens)]
            done = scheduler.commit(plan, StepResult([NS_PER_S], last), (number + 1) * NS_PER_S)
            if not config.overlap:
                finished = done.finished
        yield said.model_copy(
            update={
                "chunked": batch.cut.number if batch.cut else None,
                "waiting": _numbers(batch.prioritised),
                "retracted": _numbers(batch.retracted),
                "preempted": _numbers(batch.displaced),
                "finished": [request.number for request in finished],
                "free": memory.blank_blocks * page,
                "evictable": (memory.free_blocks - memory.blank_blocks) * page,
                "evicted": (memory.evicted_blocks - evicted) * page,
                "full": batch.full,
                "ratio": round(ratio, 9),
            }
        )
        number += 1


def _said(turn: Turn | None) -> Step:
    """What a step does, as it was planned."""
    nothing = {"free": 0, "evictable": 0, "ratio": 0.0}
    if turn is None:
        return Step(**nothing)
    tokens: dict[str, list[int]] = {}
    if turn.mode != "decode":
        # whose end has come to be known meanwhile has the token of this step counted already
        held = [seat.tokens_in_memory - seat.finished for seat in turn.decoding]
        tokens = {"new": turn.new_tokens + [1] * len(held), "prefix": turn.prefixes + held}
    return Step(mode=turn.mode, reqs=_numbers(turn.seats), admitted=_numbers(turn.admitted), **tokens, **nothing)


def _sampled(turn: Turn) -> list[Seat]:
    """Who gets a token by a step that is of use to it."""
    return [seat for seat in turn.seats if seat is not turn.cut and not seat.finished]


def _numbers(seats: Sequence[Seat]) -> list[int]:
    return [seat.number for seat in seats]


def _gets_last(seat: Seat, output_tokens: dict[int, int]) -> bool:
    return seat.request.generated_tokens + 1 == output_tokens[seat.number]


def _request(recorded: SglangRequest, config: Config) -> Request:
    urgent_first = config.schedule_low_priority_values_first
    return Request(
        recorded.id,
        recorded.arrive_step * NS_PER_S,
        recorded.prompt_tokens,
        recorded.max_tokens,
        priority=recorded.priority if urgent_first else -recorded.priority,
        content=Content(recorded.runs, _FIRST_OUTPUT + _MOST_OUTPUT * recorded.id),
        ignores_eos=recorded.ignore_eos,
    )


def _scheduler(config: Config, commitment: NewTokenRatio) -> TurnScheduler:
    prioritises = config.enable_priority_scheduling
    displaces = prioritises and not config.disable_priority_preemption
    cuts = config.chunked_prefill_size > 0
    batching = PrefillTurns(
        config.chunked_prefill_size if cuts else config.max_prefill_tokens,
        config.max_running_requests,
        cuts,
        config.max_prefill_tokens,
        config.enable_mixed_chunk,
        config.priority_scheduling_preemption_threshold if displaces else None,
        commitment,
    )
    ordering = _ORDERINGS[config.schedule_policy]()
    if prioritises and config.schedule_policy in ("fcfs", "lof"):
        ordering = TwoLevel(ordering)
    settings = SchedulerConfig(
        ordering, batching, FewestGenerated(config.retraction_policy == "priority"), ends_late=config.overlap
    )
    blocks = config.max_total_tokens // config.page_size
    memory = KVRadixCounter(blocks, config.page_size, not config.disable_radix_cache)
    return TurnScheduler(settings, memory, batching.turns)
