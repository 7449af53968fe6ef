"""What can be said of a set-up without simulating it: no number of replicas will do, or at least so many are needed.

A replica's steps are taken to be any mixture of step shapes, each so many decodes of the mean context beside a chunk of
prompts. A linear program finds the mixture that serves the load in the least time: decodes and prompt tokens must be
served, and the mean gap between tokens must not exceed the limit on TPOT. Queues, chance and idle time only add to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linprog

from experiments.planner.load import Load
from simcore.build.simulation import Simulation
from simcore.core.errors import ServetwinError
from simcore.cost.breakdown import StepShape
from simcore.metrics.definitions import PERCENTILES

_SLACK = 0.95
"""A mixture of the shapes looked at may take a little longer than one of all shapes."""
_CHUNKS = (0, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
_TPOT_SLACK = {"p99": 1.05, "p999": 1.05, "p95": 1.1, "p90": 1.2}
"""The limit holds for a share of the requests, the mean gap is of all; below P90 it says too little of the mean."""
_ONE_REQUEST = {
    "requests": 1,
    "arrivals": {"name": "constant", "rate_per_s": 1.0},
    "prompt_tokens": {"name": "fixed", "tokens": 1},
    "output_tokens": {"name": "fixed", "tokens": 1},
}


@dataclass(frozen=True, slots=True)
class Bound:
    """At least ``replicas`` are needed, or none are enough, which ``impossible`` says the reason of.

    ``work`` is the time that replicas need for a second of the load, 0 where it is not known.
    """

    replicas: int
    work: float
    impossible: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A set-up to be bounded: its scenario with one replica that does all, for a load and the limits on it.

    With ``apart`` so many replicas that prefill and so many that decode count as one.
    """

    document: dict[str, Any]
    load: Load
    objectives: Mapping[str, Mapping[str, float]]
    apart: tuple[int, int] | None = None


def bounds_of(asked: list[Asked]) -> list[Bound]:
    """The bound of each."""
    return [bound_of(each) for each in asked]


def bound_of(asked: Asked) -> Bound:
    """The bound of a set-up; a scenario that is refused, such as a model that does not fit, is impossible."""
    load, document = asked.load, asked.document
    if not load.shares_content:  # then the requests make no difference to what is built
        document = {key: value for key, value in document.items() if key != "measurement"} | {"workload": _ONE_REQUEST}
    try:
        simulation = Simulation.prepare(document, Path())
    except ServetwinError as error:
        return Bound(1, 0.0, str(error))
    alone = _too_slow_alone(simulation, load, asked.objectives)
    if alone is not None:
        return Bound(1, 0.0, alone)
    if load.rate_per_s is None:
        return Bound(1, 0.0)
    gap_s = _mean_gap_s(asked.objectives)
    if asked.apart is None:
        seconds = least_work_s(simulation, load, gap_s)
    else:
        prefilling, decoding = asked.apart
        seconds = max(
            least_work_s(simulation, load, gap_s, decodes_only=False) / prefilling,
            least_work_s(simulation, load, gap_s, decodes_only=True) / decoding,
        )
    work = load.rate_per_s * seconds
    return Bound(max(ceil(_SLACK * work), 1), work)


def step_times(simulation: Simulation, shape: StepShape) -> tuple[float, float]:
    """How long a step takes from its first stage to its last, and how long until the next can follow it, seconds."""
    if simulation.pipeline is None:
        whole = sum(time.seconds for time in simulation.cost.terms(shape))
        return whole, whole
    stages = [sum(time.seconds for time in terms) for terms in simulation.pipeline.stage_terms(shape)]
    return sum(stages), max(stages)


def least_work_s(
    simulation: Simulation, load: Load, mean_gap_s: float | None, decodes_only: bool | None = None
) -> float:
    """The least time of one replica that a mean request takes, or its prompt or its decodes alone."""
    context = min(round(load.decode_context_tokens), simulation.max_context_tokens)
    prompt = max(round(load.mean_prompt_tokens), 1)
    stages = simulation.scenario.cluster.pipeline_parallel
    batching = simulation.scenario.scheduler.batching
    slots = int(batching.get("max_running_requests", 1))
    fit = simulation.memory.requests_that_fit(context)
    most = max(int(min(fit, slots)) // stages, 1)
    budget = int(batching.get("max_batched_tokens", max(_CHUNKS)))
    decodes = [0, *(size for power in range(13) if (size := 2**power) < most), most]
    shapes = [
        (decoding, chunk)
        for decoding in decodes
        for chunk in sorted({*_CHUNKS, budget})
        if 0 < decoding + chunk <= max(budget, decoding)
    ]
    times = np.array([step_times(simulation, _shape(decoding, context, chunk, prompt)) for decoding, chunk in shapes])
    latency, interval = times[:, 0], times[:, 1]
    counts = np.array(shapes, dtype=np.float64)
    decoded = 0.0 if decodes_only is False else max(load.mean_output_tokens - 1, 0.0)
    needed_prompt = 0.0 if load.shares_content or decodes_only else load.mean_prompt_tokens
    above = [-counts[:, 0], -counts[:, 1]]
    least = [-decoded, -needed_prompt]
    if mean_gap_s is not None:
        above.append(counts[:, 0] * latency)
        least.append(mean_gap_s * decoded)
    found = linprog(interval, A_ub=np.array(above), b_ub=np.array(least), method="highs")
    return float(found.fun) if found.status == 0 else 0.0


def _shape(decoding: int, context: int, chunk: int, prompt: int) -> StepShape:
    whole, rest = divmod(chunk, prompt)
    chunks = [(prompt, 0)] * whole + ([(rest, 0)] if rest else [])
    return StepShape(decoding, context if decoding else 0, tuple(chunks))


def _mean_gap_s(objectives: Mapping[str, Mapping[str, float]]) -> float | None:
    """What the mean gap between tokens cannot exceed."""
    gaps = [limit * _TPOT_SLACK[name] for name, limit in objectives.get("tpot_s", {}).items() if name in _TPOT_SLACK]
    return min(gaps, default=None)


def _too_slow_alone(simulation: Simulation, load: Load, objectives: Mapping[str, Mapping[str, float]]) -> str | None:
    """Why even a request that finds the service idle would be too slow, if it would."""
    if not load.shares_content:
        for percentile, limit_s in objectives.get("ttft_s", {}).items():
            prompt = min(load.prompt_at(PERCENTILES[percentile] / 100), simulation.max_context_tokens)
            alone_s = prompt_s(simulation, prompt)
            if alone_s > limit_s:
                return f"a prompt of {prompt:,} tokens takes {alone_s:.3g} s with a replica to itself"
    for percentile, limit_s in objectives.get("tpot_s", {}).items():
        context = min(load.context_at(PERCENTILES[percentile] / 100), simulation.max_context_tokens)
        alone_s = step_times(simulation, StepShape(1, max(context, 1)))[0] if context else 0.0
        if alone_s > limit_s:
            return f"a token after {context:,} takes {alone_s:.3g} s with a replica to itself"
    return None


def prompt_s(simulation: Simulation, tokens: int) -> float:
    """The time of a prompt's steps, with a replica to itself."""
    budget = int(simulation.scenario.scheduler.batching.get("max_batched_tokens", tokens))
    starts = range(0, tokens, budget)
    return sum(step_times(simulation, StepShape(chunks=((min(budget, tokens - start), start),)))[0] for start in starts)
