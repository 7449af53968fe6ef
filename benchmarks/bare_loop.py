"""The baseline: a bare SimPy loop with exact fast-forward and none of the rest.

One server, one kind of request, a price linear in batch and context: no KV memory, no policies, no tables, no gaps.
What servetwin adds to this is the cost of being servetwin.
"""

from collections import deque
from collections.abc import Generator
from heapq import heappop, heappush
from typing import Any

import numpy as np
import simpy

PREFILL_NS, DECODE_BASE_NS, DECODE_NS_PER_REQUEST, DECODE_NS_PER_TOKEN = 23_000_000, 6_400_000, 12_000, 45


def simulate(requests: int, rate_per_s: float, prompt_tokens: int, output_tokens: int) -> float:
    """Serve Poisson arrivals with prefill first; returns the mean time to the first token in seconds."""
    env = simpy.Environment(initial_time=0)
    gaps = np.random.default_rng(0).exponential(1e9 / rate_per_s, requests)
    server = _Server(env, prompt_tokens, output_tokens)
    env.process(_arrivals(env, np.cumsum(gaps).astype(np.int64).tolist(), server))
    env.run()
    return server.waited_ns / requests / 1e9


class _Server:
    def __init__(self, env: simpy.Environment, prompt_tokens: int, output_tokens: int) -> None:
        self.env = env
        self.prompt_tokens, self.output_tokens = prompt_tokens, output_tokens
        self.queue: deque[int] = deque()
        self.waited_ns = 0
        self.idle: simpy.Event | None = None
        env.process(self._run())

    def _run(self) -> Generator[simpy.Event, Any, None]:
        env, queue = self.env, self.queue
        finishes: list[int] = []
        step = context = 0
        while True:
            if queue:
                chunk = [queue.popleft() for _ in range(min(len(queue), 8))]
                yield env.timeout(PREFILL_NS * len(chunk) + DECODE_NS_PER_TOKEN * context)
                step += 1
                context += len(finishes) + len(chunk) * self.prompt_tokens
                for arrival_ns in chunk:
                    self.waited_ns += int(env.now) - arrival_ns
                    heappush(finishes, step + self.output_tokens - 1)
            elif finishes:
                size, steps, taken, until = len(finishes), finishes[0] - step, 0, env.peek()
                for done in range(1, steps + 1):  # noqa: B007
                    context += size
                    taken += DECODE_BASE_NS + DECODE_NS_PER_REQUEST * size + DECODE_NS_PER_TOKEN * context
                    if env.now + taken >= until:
                        break
                yield env.timeout(taken)
                step += done
            else:
                self.idle = env.event()
                yield self.idle
            while finishes and finishes[0] <= step:
                heappop(finishes)
                context -= self.prompt_tokens + self.output_tokens - 1


def _arrivals(env: simpy.Environment, times_ns: list[int], server: _Server) -> Generator[simpy.Event, Any, None]:
    for time_ns in times_ns:
        yield env.timeout(time_ns - int(env.now))
        server.queue.append(time_ns)
        if server.idle is not None:
            server.idle.succeed()
            server.idle = None
