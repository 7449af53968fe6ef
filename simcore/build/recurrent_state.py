"""What a model with linear attention rules out, since its states are not kept or moved as blocks are."""

from simcore.core.errors import InputError
from simcore.models import ModelSpec
from simcore.scenario import Scenario


def check_recurrent_state(scenario: Scenario, spec: ModelSpec, shares_content: bool) -> None:
    """Raise ``InputError`` for what would need states to be kept or moved as blocks are.

    A prefix cache does no harm where requests have nothing to find in it; ``build_memory`` then makes none.
    """
    if not spec.has_linear_attention:
        return
    memory, why = scenario.memory, f"since {spec.name} has layers whose states are not"
    if memory.prefix_caching and shares_content:
        raise InputError("memory.prefix_caching", True, f"false, {why} kept")
    if memory.tiers:
        raise InputError("memory.tiers", [tier.name for tier in memory.tiers], f"none, {why} copied")
    mode = scenario.scheduler.preemption.mode
    if mode == "swap":
        raise InputError("scheduler.preemption.mode", mode, f"another one, {why} swapped out")
