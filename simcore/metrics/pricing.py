"""What the prices of a run are worth: where they come from, and what was never measured."""

from typing import Any

from simcore.core.clock import to_s
from simcore.core.result import Columns
from simcore.cost.host_time import HOST
from simcore.cost.price_shares import MOST_OUTSIDE, price_shares, unmeasured
from simcore.cost.profile_choice import ROOFLINE
from simcore.cost.slow_experts import slower_than_bf16
from simcore.hardware import Accelerator
from simcore.metrics.run_facts import PoolFacts, RunFacts, common
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
    found = [_of_pool(pool, steps) for pool in facts.pools]
    return found[0][0] if len(found) == 1 else _together([pool.name for pool in facts.pools], found)


def _of_pool(pool: PoolFacts, steps: Columns) -> tuple[dict[str, Any], float]:
    """The section of one pool, and the time that was priced."""
    own = pool.of_pool(steps)
    busy_s = float((steps["end_s"] - steps["start_s"])[own].sum())
    if pool.pipelines:  # of the time in flight, that in which a stage computed or sent
        busy_s = to_s(sum(pipeline.computed_ns + pipeline.sent_ns for pipeline in pool.pipelines))
    shares = price_shares(pool.priced, pool.work, pool.ranges, busy_s)
    profile = pool.cost.prices.profile
    missing: list[str] = []
    if profile is None:
        name, note = None, _UNCALIBRATED.format(without_profile(pool.scenario, pool.accelerator))
    else:
        name, missing = profile.name, unmeasured(pool.cost)
        note = _CALIBRATED.format(inside=1 - shares.outside, profile=name, host=shares.by_source.get(HOST, 0.0))
        if missing:
            note = f"{note} {_UNMEASURED.format(name, ', '.join(missing))}"
    section = {
        "profile": name,
        "fallback_profiles": {kind: other.name for kind, other in sorted(pool.cost.prices.fallback_profiles.items())},
        "shares": shares.by_source,
        "outside_calibrated_range": shares.outside,
        "unmeasured": missing,
        "slower_than_bf16": [] if profile is None else slower_than_bf16(pool.cost),
        "note": note,
    }
    return section, busy_s


def _together(names: list[str], found: list[tuple[dict[str, Any], float]]) -> dict[str, Any]:
    """The section of several pools: shares weigh by the time priced; profiles are told apart where they differ."""
    sections = [section for section, _ in found]
    all_s = sum(busy_s for _, busy_s in found)
    weights = [busy_s / all_s if all_s else 1 / len(found) for _, busy_s in found]
    sources = dict.fromkeys(source for section in sections for source in section["shares"])
    notes = dict.fromkeys(section["note"] for section in sections)
    told = [f"Pool {name}: {section['note']}" for name, section in zip(names, sections, strict=True)]
    return {
        "profile": common(section["profile"] for section in sections)
        or " and ".join(dict.fromkeys(section["profile"] or ROOFLINE for section in sections)),
        "fallback_profiles": {
            kind: name for section in sections for kind, name in section["fallback_profiles"].items()
        },
        "shares": {
            source: sum(
                weight * section["shares"].get(source, 0.0) for weight, section in zip(weights, sections, strict=True)
            )
            for source in sources
        },
        "outside_calibrated_range": sum(
            weight * section["outside_calibrated_range"] for weight, section in zip(weights, sections, strict=True)
        ),
        "unmeasured": list(dict.fromkeys(kind for section in sections for kind in section["unmeasured"])),
        "slower_than_bf16": list(dict.fromkeys(kind for section in sections for kind in section["slower_than_bf16"])),
        "note": sections[0]["note"] if len(notes) == 1 else " ".join(told),
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
