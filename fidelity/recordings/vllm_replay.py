"""Our scheduler, with the settings of the ``vllm-v1`` preset, on the requests of a recording of vLLM's."""

from collections import defaultdict
from collections.abc import Iterator

from fidelity.recordings.form import IDENTITY_BITS
from fidelity.recordings.vllm import Step, VllmRecording, VllmRequest
from policies.batching.chunked_prefill import ChunkedPrefill
from policies.ordering import Ordering
from policies.ordering.fcfs import FirstComeFirstServed
from policies.ordering.two_level import TwoLevel
from policies.preemption import Preemption
from policies.preemption.latest import Latest
from policies.preemption.lowest_priority import LowestPriority
from simcore.core.clock import NS_PER_S
from simcore.core.content import Content, Run
from simcore.core.request import Request
from simcore.memory.block_manager import KVBlockManager
from simcore.scheduling.config import SchedulerConfig
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.step import StepResult


def replay(recording: VllmRecording) -> Iterator[Step]:
    """What we decide in each step; goes on for ever.

    Requests are numbered in the order in which ties are broken: as they were added, or by their ids where they are
    sorted by priority.
    """
    scheduler, ends_late = _scheduler(recording), recording.engine.async_scheduling
    ordered = list(recording.requests)
    if recording.config.policy == "priority":
        ordered.sort(key=lambda recorded: recorded.id)
    longest = recording.config.max_model_len
    output_tokens = [recorded.output_within(longest) for recorded in ordered]
    ids = [recorded.id for recorded in ordered]
    arrivals: dict[int, list[Request]] = defaultdict(list)
    aborts: dict[int, list[Request]] = defaultdict(list)
    for number, recorded in enumerate(ordered):
        request = _request(number, recorded, recording)
        arrivals[recorded.arrive_step].append(request)
        if recorded.abort_step is not None:
            aborts[recorded.abort_step].append(request)
    over: set[int] = set()
    step = 0
    while True:
        for request in arrivals.pop(step, ()):
            scheduler.submit(request, step * NS_PER_S)
        for request in aborts.pop(step, ()):
            if request.number not in over:
                over.add(request.number)
                scheduler.drop(request)
        plan = scheduler.plan(step * NS_PER_S)
        scheduled = list(scheduler.scheduled(plan))
        ended = [*(request for request in plan.preempted if request.number in over), *plan.released]
        after = scheduler.memory.free_blocks
        last = [
            request
            for request, tokens in scheduled
            if (request.pool is not None or tokens == request.tokens_to_compute)
            and request.generated_tokens + 1 == output_tokens[request.number]
        ]
        scheduler.commit(plan, StepResult([NS_PER_S], last), (step + 1) * NS_PER_S)
        over.update(request.number for request in last)
        if not ends_late:
            ended += last
        yield Step(
            scheduled={ids[request.number]: tokens for request, tokens in scheduled},
            cached_tokens={
                ids[request.number]: request.cached_tokens
                for request, _ in scheduled
                if request.first_scheduled_ns == step * NS_PER_S and request.cached_tokens
            },
            preempted=sorted(ids[request.number] for request in plan.preempted),
            finished=sorted(ids[request.number] for request in ended),
            free_blocks_after=after if ends_late else scheduler.memory.free_blocks,
        )
        step += 1


def _request(number: int, recorded: VllmRequest, recording: VllmRecording) -> Request:
    runs = recorded.runs
    equal = [Run(1, 1)] * recorded.output if recording.engine.sampled_tokens == "one" else []
    return Request(
        number,
        recorded.arrive_step * NS_PER_S,
        recorded.prompt_tokens,
        priority=recorded.priority,
        content=Content(runs, (number + 1) << IDENTITY_BITS, equal),
    )


def _scheduler(recording: VllmRecording) -> Scheduler:
    config = recording.config
    batching = ChunkedPrefill(
        config.max_num_batched_tokens, config.max_num_seqs, config.long_prefill_token_threshold or None
    )
    ordering: Ordering = FirstComeFirstServed()
    preemption: Preemption = Latest()
    if config.policy == "priority":
        ordering, preemption = TwoLevel(), LowestPriority()
    memory = KVBlockManager(config.num_blocks - 1, config.block_size, config.prefix_caching)
    settings = SchedulerConfig(
        ordering,
        batching,
        preemption,
        reserve_whole_prompt=config.reserve_full_isl,
        ends_late=recording.engine.async_scheduling,
    )
    return Scheduler(settings, memory)
