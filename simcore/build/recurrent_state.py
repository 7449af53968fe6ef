"""What a model with linear attention allows, whose states are kept at some places and not moved as blocks are."""

from simcore.build.turns import turns_of
from simcore.core.errors import InputError
from simcore.memory.kv_bytes import attention_counts
from simcore.models import ModelSpec
from simcore.scenario import Scenario

_MOST_BY_DEFAULT = 256


def kept_states(scenario: Scenario, spec: ModelSpec, shares_content: bool) -> int:
    """How many states are kept for others beside those of running requests.

    None where requests have nothing in common: whoever found some would be a request that was preempted.
    """
    memory = scenario.memory
    if not (spec.has_linear_attention and memory.prefix_caching and shares_content):
        return 0
    running = scenario.scheduler.batching.get("max_running_requests", 1)
    kept = memory.prefix_cache.kept_states
    return min(running, _MOST_BY_DEFAULT) if kept is None else kept


def check_recurrent_state(scenario: Scenario, spec: ModelSpec, shares_content: bool) -> None:
    """Raise ``InputError`` for what would need states to be moved as blocks are, or found as nobody keeps them."""
    memory, cache = scenario.memory, scenario.memory.prefix_cache
    if not spec.has_linear_attention:
        if cache.kept_states is not None:
            raise InputError("memory.prefix_cache.kept_states", cache.kept_states, f"none, since {spec.name} has none")
        return
    why = f"since {spec.name} has layers whose states are not"
    if memory.prefix_caching and shares_content:
        _check_kept(scenario, spec)
    if memory.tiers:
        raise InputError("memory.tiers", [tier.name for tier in memory.tiers], f"none, {why} copied")
    mode = scenario.scheduler.preemption.mode
    if mode == "swap":
        raise InputError("scheduler.preemption.mode", mode, f"another one, {why} swapped out")


def state_notices(scenario: Scenario, spec: ModelSpec, kept: int) -> tuple[str, ...]:
    """What a user must know of the prefixes of a model of whose states so many are kept."""
    if not kept:
        return ()
    interval = scenario.memory.prefix_cache.state_interval_tokens
    return (
        f"Prefixes of {spec.name} are found as far as one of {kept:,} kept states reaches, at multiples of "
        f"{interval:,} tokens (memory.prefix_cache.kept_states and state_interval_tokens).",
    )


def _check_kept(scenario: Scenario, spec: ModelSpec) -> None:
    cache, block_tokens = scenario.memory.prefix_cache, scenario.memory.block_size_tokens
    states = f"states of {spec.name}"
    if any(kind.window_tokens is not None for kind in attention_counts(spec)):
        expected = f"false, since {spec.name} has sliding windows beside layers with states"
        raise InputError("memory.prefix_caching", True, expected)
    if cache.index == "radix" and turns_of(scenario) is None:
        expected = f"false with memory.prefix_cache.index: radix, since {states} are kept in a tree only where prompts "
        expected += "and decodes take turns, else with index: hash"
        raise InputError("memory.prefix_caching", True, expected)
    if cache.warm_up_requests:
        expected = f"0, since {states} are kept only of what was computed"
        raise InputError("memory.prefix_cache.warm_up_requests", cache.warm_up_requests, expected)
    if cache.state_interval_tokens % block_tokens:
        expected = f"a multiple of memory.block_size_tokens, {block_tokens}, since {states} are kept between blocks"
        raise InputError("memory.prefix_cache.state_interval_tokens", cache.state_interval_tokens, expected)
