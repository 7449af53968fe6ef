"""The yardstick: a bare SimPy loop of the same work. What servetwin adds to it is the cost of being servetwin.

The loop has Poisson arrivals, one server with continuous batching, and one SimPy event per arrival and per step. A step
takes whole prompts from the queue while a token budget and slots last, and gives each running request one token, which
is counted request by request. Its price is linear in the batch and in the context. It keeps the sum of the times to the
first token, and nothing else: no KV blocks, no policies, no tables of requests or steps, no gaps between tokens.

With ``jumps`` the loop takes like steps at once, as servetwin does: up to the next finish or the next event of SimPy.
Then it counts no tokens either. It is the least that a simulator with exact fast-forward can take.

``python -m benchmarks.bare_loop SCENARIO`` runs the loop of steps as a command of its own.
"""

import sys
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np
import simpy

PREFILL_NS_PER_TOKEN, STEP_NS, DECODE_NS_PER_REQUEST, DECODE_NS_PER_TOKEN = 23_000, 6_400_000, 12_000, 45
BUDGET_TOKENS, SLOTS = 8192, 256


@dataclass(frozen=True, slots=True)
class Load:
    """Requests alike, and how many of them come per second."""

    requests: int
    rate_per_s: float
    prompt_tokens: int
    output_tokens: int

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Load":
        """The load of a scenario whose lengths are fixed."""
        workload = document["workload"]
        lengths = (workload[f"{part}_tokens"]["tokens"] for part in ("prompt", "output"))
        return cls(workload["requests"], workload["arrivals"]["rate_per_s"], *lengths)


@dataclass(slots=True)
class Served:
    """Steps that were taken, and the mean time to the first token."""

    steps: int
    ttft_s: float


def simulate(load: Load, jumps: bool = False) -> Served:
    """Serve a load to its end."""
    env = simpy.Environment(initial_time=0)
    gaps_ns = np.random.default_rng(0).exponential(1e9 / load.rate_per_s, load.requests)
    server = _Server(env, load)
    env.process(server.jump() if jumps else server.step())
    env.process(_arrivals(env, np.cumsum(gaps_ns).astype(np.int64).tolist(), server))
    env.run()
    return Served(server.steps, server.waited_ns / load.requests / 1e9)


class _Server:
    def __init__(self, env: simpy.Environment, load: Load) -> None:
        self.env = env
        self.prompt_tokens, self.output_tokens = load.prompt_tokens, load.output_tokens
        self.prompt_ns = PREFILL_NS_PER_TOKEN * load.prompt_tokens
        self.queue: deque[int] = deque()
        self.waited_ns = self.steps = 0
        self.idle: simpy.Event | None = None

    def step(self) -> Generator[simpy.Event, Any, None]:
        """One event per step; ``left`` has the tokens that each running request still needs, by its arrival."""
        env, queue = self.env, self.queue
        left: dict[int, int] = {}
        context = 0
        while True:
            if not queue and not left:
                yield self._sleep()
            size = len(left)
            context += size
            prompts = self._admitted(size) if queue else ()
            price_ns = STEP_NS + DECODE_NS_PER_REQUEST * size + DECODE_NS_PER_TOKEN * context
            yield env.timeout(price_ns + len(prompts) * self.prompt_ns)
            self.steps += 1
            ended = []
            for number in left:
                left[number] -= 1
                if not left[number]:
                    ended.append(number)
            for number in ended:
                del left[number]
                context -= self.prompt_tokens + self.output_tokens - 1
            for arrival_ns in prompts:
                self.waited_ns += int(env.now) - arrival_ns
                left[arrival_ns] = self.output_tokens - 1
                context += self.prompt_tokens

    def jump(self) -> Generator[simpy.Event, Any, None]:
        """One event per step that takes prompts and per run of steps that do not; ``ends`` has the last steps."""
        env, queue = self.env, self.queue
        ends: list[int] = []
        context = 0
        while True:
            if not queue and not ends:
                yield self._sleep()
            size = len(ends)
            prompts = self._admitted(size) if queue else ()
            last = self.steps + 1 if prompts else ends[0]
            taken_ns, until_ns = len(prompts) * self.prompt_ns, env.peek() - env.now
            for step in range(self.steps + 1, last + 1):  # noqa: B007
                context += size
                taken_ns += STEP_NS + DECODE_NS_PER_REQUEST * size + DECODE_NS_PER_TOKEN * context
                if taken_ns >= until_ns:
                    break
            yield env.timeout(taken_ns)
            self.steps = step
            while ends and ends[0] == self.steps:
                heappop(ends)
                context -= self.prompt_tokens + self.output_tokens - 1
            for arrival_ns in prompts:
                self.waited_ns += int(env.now) - arrival_ns
                heappush(ends, self.steps + self.output_tokens - 1)
                context += self.prompt_tokens

    def _sleep(self) -> simpy.Event:
        self.idle = self.env.event()
        return self.idle

    def _admitted(self, decoding: int) -> list[int]:
        room = min((BUDGET_TOKENS - decoding) // self.prompt_tokens, SLOTS - decoding)
        return [self.queue.popleft() for _ in range(min(room, len(self.queue)))]


def _arrivals(env: simpy.Environment, times_ns: list[int], server: _Server) -> Generator[simpy.Event, Any, None]:
    for time_ns in times_ns:
        yield env.timeout(time_ns - int(env.now))
        server.queue.append(time_ns)
        if server.idle is not None:
            server.idle.succeed()
            server.idle = None


if __name__ == "__main__":
    import yaml

    print(simulate(Load.of(yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8")))))
