"""Adapters of a scenario: which request has which, what they take, and what they cost."""

from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from zlib import crc32

from policies.chance import uniform
from simcore.build.turns import turns_of
from simcore.core.errors import InputError
from simcore.core.request import UNSET, Request
from simcore.cost.adapters import ADAPTER_BYTES, AdapterCost
from simcore.cost.roofline import Roofline
from simcore.hardware import Accelerator
from simcore.models import ModelSpec
from simcore.models.adapters import AdapterShape, NotAdaptableError, adapter_shape
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import build_policy
from simcore.scenario.sections import Adapters
from simcore.scheduling.adapter_slots import AdapterSlots

_CHANCE_OF_ADAPTER = 11


def check_adapters(scenario: Scenario, spec: ModelSpec, role: str, shares_content: bool) -> None:
    """Raise ``InputError`` for adapters of a model, or beside settings, that do not go with them."""
    section = scenario.adapters
    if section is None:
        return
    ordering, memory = build_policy("ordering", scenario.scheduler.ordering, "scheduler.ordering"), scenario.memory
    apart = section.of == "tenant" and not memory.prefix_cache.share_between_tenants
    reasons = {
        "pools hand requests over": role != "mixed",
        "pipeline stages have batches in flight": scenario.cluster.pipeline_parallel > 1,
        "batching takes turns": turns_of(scenario) is not None,
        "requests return from swap space": scenario.scheduler.preemption.mode == "swap",
        "requests return from memory.tiers": bool(memory.tiers),
        "scheduler.ordering takes running requests out": ordering.preemptive,
        "scheduler.ordering promotes who has waited": ordering.promotes_after_s is not None,
        "requests of different adapters would share prefixes, unless adapters are of tenants, and "
        "memory.prefix_cache.share_between_tenants is false": memory.prefix_caching and shares_content and not apart,
    }
    for reason, holds in reasons.items():
        if holds:
            raise InputError("adapters.count", section.count, f"no adapters, since {reason}")
    try:
        _shape(scenario, spec, section)
    except NotAdaptableError as error:
        raise InputError("adapters.count", section.count, f"no adapters, since {error}") from None


def adapter_bytes(scenario: Scenario, spec: ModelSpec) -> int:
    """What the slots of adapters take of one accelerator's memory."""
    section = scenario.adapters
    return 0 if section is None else section.slots * _shape(scenario, spec, section).parameters * ADAPTER_BYTES


def adapter_cost(
    scenario: Scenario, spec: ModelSpec, accelerator: Accelerator, roofline: Roofline
) -> AdapterCost | None:
    """What the adapters of a scenario cost, None without any; they come over PCIe."""
    if scenario.adapters is None:
        return None
    return AdapterCost(_shape(scenario, spec, scenario.adapters), roofline, accelerator.pcie_bytes_per_s)


def adapter_slots(scenario: Scenario) -> AdapterSlots | None:
    """The slots of a fresh replica, None without adapters."""
    section = scenario.adapters
    return None if section is None else AdapterSlots(_adapter_of(section, scenario.seed), section.slots)


def _shape(scenario: Scenario, spec: ModelSpec, section: Adapters) -> AdapterShape:
    return adapter_shape(spec, section.rank, scenario.cluster.tensor_parallel, section.targets == "all")


def _adapter_of(section: Adapters, seed: int) -> Callable[[Request], int]:
    """Which adapter a request uses: the same for the same request, session or tenant, whoever asks."""
    ends = list(accumulate((place + 1) ** -section.popularity for place in range(section.count)))

    def key(request: Request) -> int:
        if section.of == "tenant":
            return crc32(request.tenant.encode())
        return request.session if section.of == "session" and request.session != UNSET else request.number

    def adapter_of(request: Request) -> int:
        return bisect_left(ends, uniform(seed, key(request), _CHANCE_OF_ADAPTER) * ends[-1])

    return adapter_of
