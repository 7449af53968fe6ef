"""How long a set-up is watched: briefly first, and longer where that leaves open whether it holds its limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.planner.load import Load

_ASSUMED_TPOT_S = 0.05
_WARM_UP_STAYS = 3.0
"""Mean stays of a request, as long as limits allow, that the service has to fill up before anything is measured."""
_LENGTHS = ((1_500, 8.0), (10_000, 40.0), (30_000, 120.0))
"""Requests, and mean stays, that each stage is long at least."""
DEFAULT_MOST_REQUESTS = 40_000


@dataclass(frozen=True, slots=True)
class Stage:
    """One run: of ``duration_s`` from time 0, the first ``warmup_s`` unmeasured; None is the workload as it stands.

    ``fail_deviates`` are the normal deviates by which a share must lie below its limit to settle that a set-up fails,
    ``pass_deviates`` those above it to settle that it holds; None where a run of that length cannot settle this.
    """

    duration_s: float | None
    warmup_s: float | None
    fail_deviates: float
    pass_deviates: float | None


def stages_of(load: Load, objectives: Mapping[str, Mapping[str, float]], most_requests: int) -> tuple[Stage, ...]:
    """The stages for a load and the limits on it, at most so many requests each.

    A service starts empty, so a run that is too short flatters it: the first stage can only show that limits do not
    hold. A workload that cannot be drawn out is run as it stands.
    """
    if not load.steady or load.rate_per_s is None:
        return (Stage(None, None, 0.0, 0.0),)
    stay_s = _longest_stay_s(load, objectives)
    rate = load.rate_per_s
    longest_s = most_requests / rate
    lengths = [min(max(requests / rate, stays * stay_s), longest_s) for requests, stays in _LENGTHS]
    warmup_s = min(_WARM_UP_STAYS * stay_s, lengths[0] / 4)
    settled = ((2.576, None), (1.96, 1.645), (0.0, 1.645))
    found: dict[float, Stage] = {}
    for length, (fails, passes) in zip(lengths, settled, strict=True):
        found[length] = Stage(float(f"{length:.4g}"), float(f"{warmup_s:.4g}"), fails, passes)
    return tuple(found.values())


def _longest_stay_s(load: Load, objectives: Mapping[str, Mapping[str, float]]) -> float:
    """How long a mean request stays where limits are just kept."""
    if objectives.get("e2e_s"):
        return min(objectives["e2e_s"].values())
    tpot_s = min(objectives.get("tpot_s", {}).values(), default=_ASSUMED_TPOT_S)
    return min(objectives.get("ttft_s", {}).values(), default=0.0) + load.mean_output_tokens * tpot_s


def staged(document: Mapping[str, Any], stage: Stage, workload: Mapping[str, Any] | None) -> dict[str, Any]:
    """The scenario of a stage; ``workload`` is its section of that length, None where the workload stands as it is."""
    if workload is None:
        return dict(document)
    measured = {"warmup_s": stage.warmup_s, **(document.get("measurement") or {})}
    return {**document, "workload": dict(workload), "measurement": measured}
