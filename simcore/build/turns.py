"""What a scenario may ask for where prompts and decodes take turns."""

from policies.batching import Turns
from policies.ordering import GroupOrdering, Ordering
from simcore.core.errors import InputError
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import build_policy


def turns_of(scenario: Scenario) -> Turns | None:
    """How prompts and decodes take turns by the batching policy of a scenario, None if they do not."""
    turns: Turns | None = build_policy("batching", scenario.scheduler.batching, "scheduler.batching").turns
    return turns


def check_turns(scenario: Scenario) -> None:
    """Raise ``InputError`` for what does not go with a batching policy by which prompts and decodes take turns."""
    if turns_of(scenario) is None:
        return
    memory, scheduler = scenario.memory, scenario.scheduler
    name, preemption, cache = scheduler.batching["name"], scheduler.preemption, scenario.memory.prefix_cache
    wrong: dict[str, tuple[object, bool, str]] = {
        "memory.prefix_cache.index": (
            cache.index,
            memory.prefix_caching and cache.index != "radix",
            "radix, or memory.prefix_caching: false",
        ),
        "memory.prefix_cache.tenant_shares": (cache.tenant_shares, bool(cache.tenant_shares), "none"),
        "memory.reservation": (memory.reservation, memory.reservation != "none", "none"),
        "memory.watermark_share": (memory.watermark_share, memory.watermark_share > 0, "0"),
        "scheduler.preemption.mode": (preemption.mode, preemption.mode != "recompute", "recompute"),
        "scheduler.preemption.reserved_blocks": (preemption.reserved_blocks, bool(preemption.reserved_blocks), "none"),
        "scheduler.reserve_whole_prompt": (False, not scheduler.reserve_whole_prompt, "true"),
        "scheduler.ordering.name": (
            scheduler.ordering["name"],
            not _sorts(build_policy("ordering", scheduler.ordering, "scheduler.ordering")),
            "an ordering by a key that neither displaces nor promotes",
        ),
        "cluster.pipeline_parallel": (
            scenario.cluster.pipeline_parallel,
            scenario.cluster.pipeline_parallel > 1,
            "1",
        ),
    }
    for field, (value, holds, expected) in wrong.items():
        if holds:
            raise InputError(field, value, f"{expected} with the batching policy {name}")


def _sorts(ordering: Ordering) -> bool:
    return not (isinstance(ordering, GroupOrdering) or ordering.preemptive or ordering.promotes_after_s is not None)
