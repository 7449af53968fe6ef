"""A replay of requests with continuous batching that measures what KV memory is used for while requests wait for it."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from experiments.unpaged_memory.contiguous import KvAllocator

StepNs = Callable[[int], float]
"""How long a step over so many tokens takes, in nanoseconds."""


@dataclass(slots=True)
class _Request:
    number: int
    arrival_ns: float
    prompt_tokens: int
    total_tokens: int
    done_tokens: int


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Shares of KV memory, averaged over the time in which requests waited for it, and how many ran then.

    ``token_states``, ``reserved``, ``internal`` and ``external`` are those of ``Fragmentation`` and add up to 1.
    """

    token_states: float
    reserved: float
    internal: float
    external: float
    running_requests: float
    preemptions: int


class _Replay:
    """First come, first served: running requests get a token each, then waiting ones are admitted in order.

    A prompt is computed in the step that admits it. Where a running request finds no block, the one that came last
    gives way and is computed again, first of all that wait. These are the rules of ``simcore.scheduling.scheduler`` for
    fcfs with whole prompts.
    """

    def __init__(self, memory: KvAllocator, step_ns: StepNs, max_batched_tokens: int, max_running: int) -> None:
        self.memory = memory
        self.step_ns = step_ns
        self.max_batched_tokens = max_batched_tokens
        self.max_running = max_running
        self.waiting: deque[_Request] = deque()
        self.running: list[_Request] = []
        self.preemptions = 0
        self.memory_short = False

    def step(self) -> int:
        """Plan one step; returns its tokens. ``memory_short`` then tells whether somebody found no memory."""
        self._decode()
        tokens = len(self.running)
        while not self.memory_short and self.waiting and len(self.running) < self.max_running:
            head = self.waiting[0]
            if tokens + head.done_tokens > self.max_batched_tokens:
                break
            if not self.memory.admit(head.number, head.done_tokens, head.total_tokens):
                self.memory_short = True
                break
            self.running.append(self.waiting.popleft())
            tokens += head.done_tokens
        return tokens

    def finish(self) -> None:
        """Give every running request the token that the step computed, and let go of those that have all.

        The last token of a request is never stored, as no further one attends to it.
        """
        for request in self.running:
            request.done_tokens += 1
        for request in self.running:
            if request.done_tokens >= request.total_tokens:
                self.memory.release(request.number)
        self.running = [request for request in self.running if request.done_tokens < request.total_tokens]

    def _decode(self) -> None:
        self.memory_short = False
        place = 0
        while place < len(self.running):
            if self.memory.grow(self.running[place].number):
                place += 1
                continue
            victim = self.running.pop()
            self.memory.release(victim.number)
            self.waiting.appendleft(victim)
            self.preemptions += 1
            self.memory_short = True


def replay_memory_use(
    requests: Iterable[tuple[float, int, int]],
    memory: KvAllocator,
    step_ns: StepNs,
    max_batched_tokens: int = 2560,
    max_running_requests: int = 256,
) -> MemoryUse:
    """Serve requests, given as arrival (ns), prompt and output tokens in order of arrival, and measure.

    Steps count in which a request found no memory, since only then is a slot that holds no token a loss, by their time,
    until the last request has arrived. Raises ``ValueError`` if no request ever waits for memory.
    """
    replay = _Replay(memory, step_ns, max_batched_tokens, max_running_requests)
    arrivals = iter(
        [_Request(n, at, prompt, prompt + output, prompt) for n, (at, prompt, output) in enumerate(requests)]
    )
    coming = next(arrivals, None)
    now_ns = weight_ns = 0.0
    sums = [0.0] * 5
    while coming is not None:
        while coming is not None and coming.arrival_ns <= now_ns:
            replay.waiting.append(coming)
            coming = next(arrivals, None)
        if coming is not None and not replay.waiting and not replay.running:
            now_ns = coming.arrival_ns
            continue
        tokens = replay.step()
        duration_ns = replay.step_ns(tokens)
        if replay.memory_short:
            use = memory.fragmentation()
            amounts = (use.token_states, use.reserved, use.internal, use.external, len(replay.running))
            sums = [total + duration_ns * amount for total, amount in zip(sums, amounts, strict=True)]
            weight_ns += duration_ns
        now_ns += duration_ns
        replay.finish()
    if not weight_ns:
        raise ValueError("no request ever waited for memory")
    slots = sum(sums[:4])
    shares = [amount / slots for amount in sums[:4]]
    return MemoryUse(shares[0], shares[1], shares[2], shares[3], sums[4] / weight_ns, replay.preemptions)
