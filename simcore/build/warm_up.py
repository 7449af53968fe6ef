"""Prompts that are in the prefix cache before a run begins."""

from dataclasses import replace

from simcore.build.memory import build_memory
from simcore.build.memory_plan import MemoryPlan
from simcore.core.errors import InputError
from simcore.core.request import Request
from simcore.memory import KVBlockManager, KVGroupManager, KVMemory, KVPartitions
from simcore.models import ModelSpec
from simcore.scenario import Scenario
from simcore.service.clock import Clock
from simcore.workload import Workload, first_requests, samples_per_request

_FIELD = "memory.prefix_cache.warm_up_requests"
_PINNED = "memory.prefix_cache.pinned_tokens"


def check_warm_up(scenario: Scenario, workload: Workload, shares_content: bool) -> None:
    """Raise ``InputError`` if prompts are to be cached in advance and that is not possible."""
    cache = scenario.memory.prefix_cache
    if cache.pinned_tokens and not cache.warm_up_requests:
        expected = f"0, or {_FIELD} of at least 1, since what is pinned is cached from the start"
        raise InputError(_PINNED, cache.pinned_tokens, expected)
    if not cache.warm_up_requests:
        return
    reasons = {
        "nothing is known of what its requests contain": not shares_content,
        "memory.prefix_caching is off": not scenario.memory.prefix_caching,
        "memory.prefix_cache.index is not hash": cache.index != "hash",
    }
    for reason, holds in reasons.items():
        if holds:
            raise InputError(_FIELD, cache.warm_up_requests, f"0, since {reason}")
    samples = samples_per_request(workload)
    found = len(first_requests(workload, cache.warm_up_requests * samples)) // samples
    if found < cache.warm_up_requests:
        raise InputError(_FIELD, cache.warm_up_requests, f"at most {found}, as many as the workload has")


def with_pins(plan: MemoryPlan, scenario: Scenario, spec: ModelSpec, workload: Workload) -> MemoryPlan:
    """The plan with the blocks counted that are pinned; raises ``InputError`` if they leave no room for requests."""
    if not scenario.memory.prefix_cache.pinned_tokens:
        return plan
    memory = build_memory(scenario, spec, plan, shares_content=True, timer=Clock())
    warm_up(memory, scenario, workload)
    pinned_blocks = memory.total_blocks - memory.unpinned_blocks
    return replace(plan, pinned_blocks=pinned_blocks, pinned_tokens=scenario.memory.prefix_cache.pinned_tokens)


def warm_up(memory: KVMemory, scenario: Scenario, workload: Workload) -> None:
    """Put the prompts of the workload's first requests into the cache, the last of them used last.

    Raises ``InputError`` if all that is pinned takes all memory there is.
    """
    cache = scenario.memory.prefix_cache
    if not cache.warm_up_requests:
        return
    assert isinstance(memory, KVBlockManager | KVGroupManager | KVPartitions)
    requests = first_requests(workload, cache.warm_up_requests * samples_per_request(workload))
    assert requests.contents is not None
    tenants = None if requests.tenant is None else requests.tenant.tolist()
    for place, content in enumerate(requests.contents):
        tenant = "" if tenants is None else requests.tenants[tenants[place]]
        prompt_tokens = int(requests.prompt_tokens[place])
        request = Request(-1 - place, 0, prompt_tokens, tenant=tenant, content=content)
        if not memory.load(request, cache.pinned_tokens) or not memory.unpinned_for(request):
            whose = f" of tenant {tenant}" if scenario.memory.prefix_cache.tenant_shares else ""
            expected = f"so few that the first {cache.warm_up_requests} prompts pin less than all KV blocks{whose}"
            raise InputError(_PINNED, cache.pinned_tokens, expected)
