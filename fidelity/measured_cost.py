"""Simulate with prices of measured steps."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fidelity.step_prices import StepPrices
from policies.horizon import FOREVER
from simcore.build.memory_plan import kv_format, weight_dtype
from simcore.build.prices import kernel_prices
from simcore.build.simulation import Simulation
from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.token_gaps import StepDurations
from simcore.cost.assumptions import HostOverhead
from simcore.cost.step_cost import StepCost
from simcore.hardware import Accelerator
from simcore.models import ModelSpec
from simcore.scenario import Scenario

Counts = NDArray[np.int64]


class MeasuredStepCost(StepCost):
    """Takes steps at the price of measured ones, host included; of work and peaks it says what any cost does."""

    def __init__(self, scenario: Scenario, spec: ModelSpec, accelerator: Accelerator, prices: StepPrices) -> None:
        kernels = kernel_prices(scenario, spec, accelerator)
        super().__init__(spec, kernels, HostOverhead(), weight_dtype(scenario, spec), kv_format(scenario, spec), 1)
        self._steps = prices

    def decode_steps_ns(self, pool: DecodePool, steps: int, within_ns: int = FOREVER, more: int = 0) -> StepDurations:
        """See ``StepCost``."""
        size = np.full(steps, pool.size)
        nothing = np.zeros(steps, dtype=np.int64)
        context = pool.context_tokens + pool.size * np.arange(steps)
        durations = self._priced(size, context, nothing, nothing, nothing, nothing, size)
        if within_ns < FOREVER:
            reached = int(np.searchsorted(np.cumsum(durations), within_ns)) + 1 + more
            durations = durations[: min(reached, steps)]
        return durations

    def step_ns(self, plan: BatchPlan, pool: DecodePool, sampled_rows: int) -> int:
        """See ``StepCost``."""
        context = pool.context_tokens if plan.decoding else 0
        context -= sum(pool.context_of(request.origin) for request in plan.stalled) if plan.decoding else 0
        pairs = sum(tokens * before + tokens * (tokens + 1) // 2 for _, tokens, before in plan.chunks)
        before = sum(before for _, _, before in plan.chunks)
        counts = (plan.decoding, context, len(plan.chunks), plan.prefill_tokens, pairs, before, sampled_rows)
        return int(self._priced(*(np.array([count]) for count in counts))[0])

    def _priced(self, *counts: Counts) -> Counts:
        names = ("decoding", "decode_context", "chunks", "chunk_tokens", "chunk_pairs", "chunk_context", "rows")
        priced = self._steps.price_ns(dict(zip(names, counts, strict=True)))
        rounded: Counts = np.maximum(np.rint(priced), 1).astype(np.int64)
        return rounded


def at_measured_prices(simulation: Simulation, prices: StepPrices) -> Simulation:
    """The same scenario, its steps priced by measured ones."""
    cost = MeasuredStepCost(simulation.scenario, simulation.spec, simulation.accelerator, prices)
    return replace(simulation, pools=(replace(simulation.pools[0], cost=cost),))
