"""Hold the scheduler against a recording of a real one's decisions, step by step.

A recording is a JSON file: ``config`` (block_size, num_blocks, max_num_batched_tokens, max_num_seqs, policy,
prefix_caching, long_prefill_token_threshold, reserve_full_isl), ``requests`` (id, arrive_step, prompt as ranges of
tokens, output, priority) and ``steps`` (scheduled in order, cached_tokens, preempted, finished by number,
free_blocks_after). One step is one call of the scheduler, the first is step 0; requests are added before their step is
planned. A fake model samples one token whenever a step completes all known tokens of a request, and no output ends
early, but where a request reaches ``max_model_len``, if that is stated.

A recording may hold more than is read here; ``Recording.unread`` names it. A key that is misspelt is refused.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from policies.batching.chunked_prefill import ChunkedPrefill
from policies.ordering import Ordering
from policies.ordering.fcfs import FirstComeFirstServed
from policies.ordering.two_level import TwoLevel
from policies.preemption import Preemption
from policies.preemption.latest import Latest
from policies.preemption.lowest_priority import LowestPriority
from simcore.core.clock import NS_PER_S
from simcore.core.content import Content, Run
from simcore.core.errors import InputError, Phrase
from simcore.core.files import read_json
from simcore.core.request import Request
from simcore.core.validation import explain
from simcore.memory.block_manager import KVBlockManager
from simcore.scheduling.scheduler import Scheduler

_OUTPUT_BITS = 40

_MISSPELT = 0.8
"""How like a name that is not there an unknown one must be to be taken for it, as ``difflib`` measures it."""
_MOST = 2**31 - 1

Count = Annotated[int, Field(ge=0, le=_MOST)]
Positive = Annotated[int, Field(ge=1, le=_MOST)]
Identity = Annotated[int, Field(ge=0, lt=1 << _OUTPUT_BITS)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    def check_spelling(self, field: str) -> None:
        """Raise ``InputError`` for a key that nobody reads and that looks like one that is missing."""
        missing = type(self).model_fields.keys() - self.model_fields_set
        for key in self.model_extra or () if missing else ():
            meant = get_close_matches(key.lower(), missing, n=1, cutoff=_MISSPELT)
            if meant:
                raise InputError(f"{field}{key}", Phrase("an unknown field"), "a field of recordings", meant[0])


class Config(_Part):
    """The engine's settings."""

    block_size: Positive
    num_blocks: Annotated[int, Field(ge=2, le=_MOST)]
    max_num_batched_tokens: Positive
    max_num_seqs: Positive
    max_model_len: Positive | None = None
    policy: Literal["fcfs", "priority"] = "fcfs"
    prefix_caching: bool = False
    long_prefill_token_threshold: Count = 0
    reserve_full_isl: bool = True


class RecordedRequest(_Part):
    """A request: its prompt as (first token, count) ranges, equal ranges being equal tokens."""

    id: Count
    arrive_step: Count
    prompt: Annotated[list[tuple[Identity, Positive]], Field(min_length=1)]
    output: Positive
    priority: Annotated[int, Field(ge=-_MOST, le=_MOST)] = 0

    def output_within(self, max_model_len: int | None) -> int:
        """Output tokens, fewer than wished for where the longest context ends them."""
        if max_model_len is None:
            return self.output
        return min(self.output, max_model_len - sum(tokens for _, tokens in self.prompt))


class Step(_Part):
    """The decisions of one step."""

    scheduled: dict[int, int]
    cached_tokens: dict[int, int] = {}
    preempted: list[int]
    finished: list[int]
    free_blocks_after: int


class Recording(_Part):
    """A whole run; ``name`` and ``engine`` only say which."""

    name: Any = None
    engine: Any = None
    config: Config
    requests: list[RecordedRequest]
    steps: Annotated[list[Step], Field(min_length=1)]

    def check_requests(self, field: str) -> None:
        """Raise ``InputError`` for an id that stands twice, or a prompt that leaves no room for an output."""
        ids: set[int] = set()
        longest = self.config.max_model_len
        for number, request in enumerate(self.requests):
            place = f"{field}requests.{number}"
            if request.id in ids:
                raise InputError(f"{place}.id", request.id, "a number that no other request has")
            ids.add(request.id)
            if request.output_within(longest) < 1:
                tokens = sum(tokens for _, tokens in request.prompt)
                raise InputError(
                    f"{place}.prompt", Phrase(f"{tokens} tokens long"), f"fewer than max_model_len, {longest}"
                )

    def parts(self) -> Iterator[tuple[str, _Part]]:
        """All parts, each with where it stands."""
        yield "", self
        yield "config.", self.config
        for number, request in enumerate(self.requests):
            yield f"requests.{number}.", request
        for number, step in enumerate(self.steps):
            yield f"steps.{number}.", step

    @property
    def unread(self) -> tuple[str, ...]:
        """Keys that are not read: the engine's own, or its recorder's."""
        return tuple(dict.fromkeys(key for _, part in self.parts() for key in part.model_extra or ()))


@dataclass(frozen=True, slots=True)
class Difference:
    """The first thing in which a step differs: ``what`` was ``recorded``, and ``ours`` is what we do."""

    step: int
    what: str
    recorded: Any
    ours: Any

    def __str__(self) -> str:
        return f"step {self.step}, {self.what}: recorded {self.recorded}, ours {self.ours}"


def read_recording(path: Path) -> Recording:
    """The recording in a file; raises ``FileError`` or ``InputError`` if it holds none."""
    try:
        recording = Recording.model_validate(read_json(path))
    except ValidationError as error:
        raise explain(error, Recording, f"{path}: ") from error
    for field, part in recording.parts():
        part.check_spelling(f"{path}: {field}")
    recording.check_requests(f"{path}: ")
    return recording


def first_difference(recording: Recording) -> Difference | None:
    """Replay a recording; None if every step takes the same decisions, in the same order."""
    for number, (recorded, ours) in enumerate(zip(recording.steps, replay(recording), strict=False)):
        for what in ("preempted", "scheduled", "cached_tokens", "finished", "free_blocks_after"):
            theirs, own = getattr(recorded, what), getattr(ours, what)
            if isinstance(theirs, dict):
                theirs, own = list(theirs.items()), list(own.items())
            if theirs != own:
                return Difference(number, what, theirs, own)
    return None


def replay(recording: Recording) -> Iterator[Step]:
    """What our scheduler decides in each step, given the recorded requests; goes on for ever."""
    scheduler = _scheduler(recording.config)
    arrivals: dict[int, list[Request]] = defaultdict(list)
    longest = recording.config.max_model_len
    output_tokens = {recorded.id: recorded.output_within(longest) for recorded in recording.requests}
    for recorded in recording.requests:
        prompt = [Run(first, tokens) for first, tokens in recorded.prompt]
        request = Request(
            recorded.id,
            recorded.arrive_step * NS_PER_S,
            sum(run.tokens for run in prompt),
            priority=recorded.priority,
            content=Content(prompt, _own_tokens(recorded.id)),
        )
        arrivals[recorded.arrive_step].append(request)
    step = 0
    while True:
        for request in arrivals.pop(step, ()):
            scheduler.submit(request, float(step))
        plan = scheduler.plan(step * NS_PER_S)
        scheduled = list(scheduler.scheduled(plan))
        if plan.decoding:
            scheduler.commit_decodes(plan, 1)
        sampled = [request for request, _ in scheduled if request.pool is not None]
        for request in scheduler.commit_chunks(plan):
            request.known_output_tokens += 1
            sampled.append(request)
            if request.known_output_tokens < output_tokens[request.number]:
                scheduler.start_decoding(request)
        finished = [
            request
            for request, _ in scheduled
            if request in sampled and request.generated_tokens == output_tokens[request.number]
        ]
        for request in finished:
            scheduler.finish(request)
        yield Step(
            scheduled={request.number: tokens for request, tokens in scheduled},
            cached_tokens={
                request.number: request.cached_tokens
                for request, _ in scheduled
                if request.first_scheduled_ns == step * NS_PER_S and request.cached_tokens
            },
            preempted=[request.number for request in plan.preempted],
            finished=sorted(request.number for request in finished),
            free_blocks_after=scheduler.memory.free_blocks,
        )
        step += 1


def _own_tokens(number: int) -> int:
    """The first identity of a request's output, which nobody else's prompt has."""
    return (number + 1) << _OUTPUT_BITS


def _scheduler(config: Config) -> Scheduler:
    batching = ChunkedPrefill(
        config.max_num_batched_tokens, config.max_num_seqs, config.long_prefill_token_threshold or None
    )
    ordering: Ordering = FirstComeFirstServed()
    preemption: Preemption = Latest()
    if config.policy == "priority":
        ordering, preemption = TwoLevel(), LowestPriority()
    memory = KVBlockManager(config.num_blocks - 1, config.block_size, config.prefix_caching)
    return Scheduler(ordering, batching, preemption, memory, reserve_whole_prompt=config.reserve_full_isl)
