"""What pools apart carry within their limits, and what the same replicas would carry mixed: estimates of means.

No queue is simulated. A replica is a server whose prompts wait as in M/D/1 (Pollaczek-Khinchine); its decode batch is
what the load keeps in it (Little's law). DistServe (OSDI 2024, section 3) reasons the same way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, inf

from simcore.build.pool import PreparedPool
from simcore.build.simulation import Simulation
from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import to_s
from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.workload import mean_lengths

TTFT, TPOT, MEMORY, TIME = "TTFT", "TPOT", "memory or slots", "time"
_TIMES = (0.25, 1.0, 4.0)
_HALVINGS = 30
_FIXED_POINT_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Carried:
    """Requests per second of all replicas together, and what no more would break."""

    requests_per_s: float
    bound_by: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Requests of some lengths: what pools ``apart`` carry, and the same replicas ``mixed``."""

    prompt_tokens: int
    output_tokens: int
    apart: Carried
    mixed: Carried


@dataclass(frozen=True, slots=True)
class _Lengths:
    prompt: int
    output: int

    @property
    def context(self) -> int:
        """Tokens that a request holds in the middle of its decoding."""
        return self.prompt + self.output // 2


class _Replica:
    """Step times of a replica of a pool, for requests of like lengths."""

    def __init__(self, pool: PreparedPool, lengths: _Lengths) -> None:
        batching = pool.scenario.scheduler.batching
        fit = int(pool.memory.requests_that_fit(lengths.prompt + lengths.output))
        self._pool = pool
        self._lengths = lengths
        self.most = min(fit, int(batching.get("max_running_requests", fit)))
        self._budget = int(batching.get("max_batched_tokens", lengths.prompt))

    def decode_s(self, decodes: float) -> float:
        """A step in which so many decode, between whole numbers along a line; at least one."""
        low = max(int(decodes), 1)
        share = max(decodes - low, 0.0)
        return (1 - share) * self._step_s(low, 0) + share * self._step_s(low + 1, 0)

    def prefill_s(self, decodes: int = 0) -> float:
        """What a prompt adds to the steps in which it is computed, beside so many decodes."""
        chunks = self._chunks(decodes)
        alone_s = self._step_s(decodes, 0) if decodes else 0.0
        return sum(self._step_s(decodes, tokens, before) - alone_s for before, tokens in chunks)

    def _chunks(self, decodes: int) -> list[tuple[int, int]]:
        size = max(self._budget - decodes, 1)
        count = ceil(self._lengths.prompt / size)
        return [(k * size, min(size, self._lengths.prompt - k * size)) for k in range(count)]

    def _step_s(self, decodes: int, chunk: int, before: int = 0) -> float:
        pool, plan = DecodePool(self._pool.scenario.memory.block_size_tokens, self._windows), BatchPlan(decodes)
        for _ in range(decodes):
            pool.join(self._lengths.context)
        if chunk:
            plan.add_chunk(Request(-1, 0, before + chunk, computed_tokens=before), chunk)
        return to_s(self._pool.cost.step_ns(plan, pool, decodes + bool(chunk)))

    @property
    def _windows(self) -> tuple[int, ...]:
        return self._pool.cost.window_tokens


def usual_lengths(simulation: Simulation) -> list[tuple[int, int]]:
    """The workload's mean prompt and output, and a quarter and four times of each."""
    prompt, output = mean_lengths(simulation.workload)
    found = [(max(round(prompt * p), 1), max(round(output * o), 2)) for p in _TIMES for o in _TIMES]
    return [each for each in found if sum(each) <= simulation.max_context_tokens]


def compare_pools(simulation: Simulation, lengths: Sequence[tuple[int, int]]) -> list[Comparison]:
    """Pools that hand over against the same replicas mixed, by mean prompt and output lengths.

    Limits are the tightest of the scenario's objectives for TTFT and TPOT; without any, time and memory are the bounds.
    """
    slo = simulation.scenario.slo
    ttft_s, tpot_s = min(slo.ttft_s.values(), default=inf), min(slo.tpot_s.values(), default=inf)
    return [_compare(simulation.pools, _Lengths(*each), ttft_s, tpot_s) for each in lengths]


def _compare(pools: Sequence[PreparedPool], lengths: _Lengths, ttft_s: float, tpot_s: float) -> Comparison:
    prefill, decode = Carried(0.0, TIME), Carried(0.0, TIME)
    mixed = Carried(0.0, TIME)
    for pool in pools:
        replica = _Replica(pool, lengths)
        mixed = _with(mixed, _most(partial(_broken_mixed, replica, lengths, ttft_s, tpot_s)), pool.replicas)
        if pool.role == "prefill":
            prefill = _with(prefill, _most(partial(_broken_prefill, replica, ttft_s)), pool.replicas)
        elif pool.role == "decode":
            decode = _with(decode, _most(partial(_broken_decode, replica, lengths, tpot_s)), pool.replicas)
    apart = min(prefill, decode, key=lambda carried: carried.requests_per_s)
    which = "prefill" if apart is prefill else "decode"
    return Comparison(
        lengths.prompt, lengths.output, Carried(apart.requests_per_s, f"{which}: {apart.bound_by}"), mixed
    )


def _with(total: Carried, one: Carried, replicas: int) -> Carried:
    return Carried(total.requests_per_s + replicas * one.requests_per_s, one.bound_by)


def _most(broken: Callable[[float], str | None]) -> Carried:
    """The greatest rate of one replica at which nothing is broken, and what is just above it."""
    low, high = 0.0, 1.0
    while broken(high) is None:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if broken(middle) is None else (low, middle)
    reason = broken(high)
    assert reason is not None
    return Carried(low, reason)


def _waits_s(service_s: float, rate: float) -> float:
    """Mean wait of M/D/1, infinite at full load."""
    load = service_s * rate
    return service_s * load / (2 * (1 - load)) if load < 1 else inf


def _broken_prefill(replica: _Replica, ttft_s: float, rate: float) -> str | None:
    service_s = replica.prefill_s()
    wait_s = _waits_s(service_s, rate)
    if wait_s == inf:
        return TIME
    return TTFT if service_s + wait_s > ttft_s else None


def _broken_decode(replica: _Replica, lengths: _Lengths, tpot_s: float, rate: float) -> str | None:
    return _batch(replica, lengths, rate, 0.0, tpot_s)[1]


def _broken_mixed(replica: _Replica, lengths: _Lengths, ttft_s: float, tpot_s: float, rate: float) -> str | None:
    prompts_share = rate * replica.prefill_s(1)
    if prompts_share >= 1:
        return TIME
    decodes, broken = _batch(replica, lengths, rate, prompts_share, tpot_s)
    if broken is not None:
        return broken
    service_s = replica.prefill_s(max(round(decodes), 1))
    if rate * service_s >= 1:
        return TIME
    step_s = replica.decode_s(decodes)
    first_s = 1.5 * step_s + service_s + _waits_s(service_s, rate)  # half a step is waited for
    return TTFT if first_s > ttft_s else None


def _batch(
    replica: _Replica, lengths: _Lengths, rate: float, prompts_share: float, tpot_s: float
) -> tuple[float, str | None]:
    """How many decode at once by Little's law, where prompts take a share of the time; and what that breaks."""
    decodes = 1.0
    for _ in range(_FIXED_POINT_ROUNDS):
        token_s = replica.decode_s(decodes) / (1 - prompts_share)
        if token_s > tpot_s:
            return decodes, TPOT
        if decodes > replica.most:
            return decodes, MEMORY
        wanted = rate * max(lengths.output - 1, 0) * token_s
        if wanted <= decodes * (1 + 1e-3):
            return decodes, None
        decodes = wanted
    return decodes, TIME
