"""What the prices of a run are worth: where they come from, and what was never measured."""

from typing import Any

from simcore.core.clock import to_s
from simcore.core.result import Columns
from simcore.cost.host_time import HOST
from simcore.cost.price_shares import MOST_OUTSIDE, price_shares, unmeasured
from simcore.cost.profile_choice import ROOFLINE
from simcore.cost.slow_experts import slower_than_bf16
from simcore.hardware import Accelerator
from simcore.metrics.run_facts import RunFacts
from simcore.scenario import Scenario

_UNCALIBRATED = (
    "100% of simulated time is priced by roofline with stated efficiencies and by assumed host constants, outside any "
    "calibrated range: {}, and absolute times may be off by tens of percent."
)
_CALIBRATED = (
    "{inside:.0%} of simulated time is priced by kernels of the profile {profile} inside their calibrated ranges; the "
    "rest by roofline, by assumed host constants ({host:.0%}) or beyond those ranges."
)
_SLOWER = (
    "Priced by {}, {} take longer than in bf16 at every number of tokens, as they were measured: the engine may have "
    "been measured with kernels that a service would not choose (docs/results/kernel-fits.md, Experts of fewer bits)."
)
_UNMEASURED = "The profile {} has no measurements of {}: a roofline prices these."


def pricing_figures(facts: RunFacts, steps: Columns) -> dict[str, Any]:
    """The section ``pricing`` of a summary."""
    if facts.measured_on is not None:
        return _measured(facts.measured_on)
    busy_s = float((steps["end_s"] - steps["start_s"]).sum())
    if facts.pipelines:  # of the time in flight, that in which a stage computed or sent
        busy_s = to_s(sum(pipeline.computed_ns + pipeline.sent_ns for pipeline in facts.pipelines))
    cost = facts.pipelines[0].cost if facts.pipelines else facts.cost
    shares = price_shares(cost, facts.work, facts.ranges, busy_s)
    profile = facts.cost.prices.profile
    missing: list[str] = []
    if profile is None:
        name, note = None, _UNCALIBRATED.format(without_profile(facts.scenario, facts.accelerator))
    else:
        name, missing = profile.name, unmeasured(facts.cost)
        note = _CALIBRATED.format(inside=1 - shares.outside, profile=name, host=shares.by_source.get(HOST, 0.0))
        if missing:
            note = f"{note} {_UNMEASURED.format(name, ', '.join(missing))}"
    return {
        "profile": name,
        "fallback_profiles": {kind: other.name for kind, other in sorted(facts.cost.prices.fallback_profiles.items())},
        "shares": shares.by_source,
        "outside_calibrated_range": shares.outside,
        "unmeasured": missing,
        "slower_than_bf16": [] if profile is None else slower_than_bf16(facts.cost),
        "note": note,
    }


def _measured(machine: str) -> dict[str, Any]:
    """The section of a run that was not priced."""
    return {
        "profile": None,
        "fallback_profiles": {},
        "shares": {},
        "outside_calibrated_range": 0.0,
        "unmeasured": [],
        "slower_than_bf16": [],
        "note": f"Nothing was priced: all steps were computed and timed on {machine}.",
    }


def pricing_warnings(pricing: dict[str, Any]) -> list[str]:
    """What users should know of the prices, given the section ``pricing`` of a summary."""
    of_experts = pricing["fallback_profiles"].get("moe", pricing["profile"])
    slower = [_SLOWER.format(of_experts, name) for name in pricing["slower_than_bf16"]]
    if pricing["outside_calibrated_range"] > MOST_OUTSIDE:
        return [pricing["note"], *slower]
    missing = pricing["unmeasured"]
    return [*([_UNMEASURED.format(pricing["profile"], ", ".join(missing))] if missing else []), *slower]


def without_profile(scenario: Scenario, accelerator: Accelerator) -> str:
    """Why a run prices by roofline alone."""
    if scenario.pricing.profile == ROOFLINE:
        return "the scenario asks for no profile"
    return f"no profile of {accelerator.name} has the kernels that the run needs"
