"""How much of a run's mean TTFT and TPOT is the host's, constant by constant."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simcore.build.simulation import Simulation
from simcore.core.clock import NS_PER_S
from simcore.core.result import Columns, Result
from simcore.cost.step_cost import StepCost

Float64Array = NDArray[np.float64]

ADDED = ("step_s", "per_request_s", "request_s", "per_prompt_token_s", "linear_prompt_s")
"""Constants that add so many times themselves."""
LAUNCHING = ("launch_s", "layer_s")
"""Constants that count where launching takes longer than kernels."""
_CLOCK_S = 1e-9


@dataclass(frozen=True, slots=True)
class HostShares:
    """What follows for mean TTFT and TPOT, in this order, if host constants were others and steps stayed as they are.

    ``constants`` are those that were simulated. ``times`` has how often each of ``ADDED`` counts. Eager steps launch
    ``launches`` kernels of ``layers``; a row of ``eager`` is one of them: by how much it counts, and what its kernels
    take.
    """

    constants: Mapping[str, float]
    times: Mapping[str, tuple[float, float]]
    launches: int
    layers: int
    eager: Float64Array = field(compare=False)

    def change(self, constants: Mapping[str, float]) -> Float64Array:
        """Seconds that mean TTFT and TPOT change by with other ``constants``; those left out stay."""
        changed = {**self.constants, **constants}
        found = np.zeros(2)
        for name in ADDED:
            found += np.array(self.times[name]) * (changed[name] - self.constants[name])
        return found + self._launching(changed) - self._launching(self.constants)

    def _launching(self, constants: Mapping[str, float]) -> Float64Array:
        least_s = self.launches * constants["launch_s"] + self.layers * constants["layer_s"]
        beyond_s = np.maximum(least_s - self.eager[:, 2], 0.0)
        weighed: Float64Array = self.eager[:, :2].T @ beyond_s
        return weighed


def host_shares(simulation: Simulation, result: Result) -> HostShares | None:
    """The shares of one run on one replica; None for others, and where nothing was finished."""
    finished = result.requests["state"] == "finished"
    if simulation.scenario.cluster.replicas > 1 or simulation.pipeline is not None or not finished.any():
        return None
    requests = {name: column[finished] for name, column in result.requests.items()}
    host, cost, steps = simulation.scenario.host, simulation.cost, result.steps
    weights = _weights(steps, requests)
    count, mixed = steps["steps"].astype(np.float64), steps["prefill_tokens"] > 0
    prompt_tokens = float(requests["prompt_tokens"].mean())
    chunks = np.where(mixed, np.maximum(np.rint(steps["prefill_tokens"] / prompt_tokens), 1), 0)
    linear_layers = sum(kind.work.count for kind in cost.linear_attention)
    times = {
        "step_s": weights @ count,
        "per_request_s": weights @ (count * (steps["decoding_requests"] + chunks)),
        "request_s": np.array([1.0, 0.0]),
        "per_prompt_token_s": np.array([prompt_tokens, 0.0]),
        "linear_prompt_s": weights @ (mixed * linear_layers),
    }
    tokens = steps["prefill_tokens"] + steps["decoding_requests"]
    eager = mixed & ~((tokens <= host.max_cudagraph_tokens) & host.mixed_graphs)
    kernels_s = [
        _kernels_s(cost, int(decoding), int(prefill))
        for decoding, prefill in zip(steps["decoding_requests"][eager], steps["prefill_tokens"][eager], strict=True)
    ]
    return HostShares(
        {name: float(getattr(host, name)) for name in (*ADDED, *LAUNCHING)},
        {name: (float(both[0]), float(both[1])) for name, both in times.items()},
        cost.host.launches,
        simulation.spec.layers,
        np.column_stack([*weights[:, eager], kernels_s]) if kernels_s else np.zeros((0, 3)),
    )


def _weights(steps: Columns, requests: Columns) -> Float64Array:
    """By how much a second of each row of steps counts in mean TTFT, and in mean TPOT."""
    rows, ends_s = len(steps["end_s"]), steps["end_s"]

    def place(time_s: Float64Array) -> NDArray[np.int64]:
        """The first row that begins at or after a time."""
        return np.searchsorted(ends_s, time_s - _CLOCK_S).astype(np.int64) + 1

    arrived = np.where(requests["arrival_s"] < _CLOCK_S, 0, place(requests["arrival_s"]))
    first, last = place(requests["first_token_s"]), place(requests["end_s"])
    several = requests["output_tokens"] > 1
    per_token = 1 / (requests["output_tokens"][several] - 1) / max(int(several.sum()), 1)
    counted = np.zeros((2, rows + 1))
    np.add.at(counted[0], arrived, 1 / len(first))
    np.add.at(counted[0], first, -1 / len(first))
    np.add.at(counted[1], first[several], per_token)
    np.add.at(counted[1], last[several], -per_token)
    summed: Float64Array = np.cumsum(counted, axis=1)[:, :rows]
    return summed


def _kernels_s(cost: StepCost, decoding: int, prefill_tokens: int) -> float:
    counts = cost.split.counts(decoding, [(prefill_tokens, 0)], decoding + 1)
    return (cost.without_attention_ns(counts) - cost.host_ns(counts)) / NS_PER_S
