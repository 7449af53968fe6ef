"""Which ways of splitting a model over accelerators go together, and with what else."""

from policies.ordering import GroupOrdering
from simcore.errors import InputError
from simcore.hardware import Accelerator
from simcore.memory.capacity import tensor_parallel_reach
from simcore.models import ModelSpec
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import build_policy


def check_parallelism(scenario: Scenario, spec: ModelSpec, accelerator: Accelerator) -> None:
    """Raise ``InputError`` for a split that the model, the accelerator or the rest of the scenario has no room for."""
    _check_tensor_parallel(scenario.cluster.tensor_parallel, spec, accelerator)
    _check_pipeline_parallel(scenario, spec)


def _check_tensor_parallel(ranks: int, spec: ModelSpec, accelerator: Accelerator) -> None:
    field = "cluster.tensor_parallel"
    reach = tensor_parallel_reach(accelerator)
    if ranks > reach:
        raise InputError(field, ranks, f"at most {reach}, since no more {accelerator.name} can work as one")
    heads = min(group.attention.query_heads for group in spec.layer_groups)
    if heads % ranks:
        raise InputError(field, ranks, f"a divisor of the {heads} query heads of {spec.name}")


def _check_pipeline_parallel(scenario: Scenario, spec: ModelSpec) -> None:
    stages, field = scenario.cluster.pipeline_parallel, "cluster.pipeline_parallel"
    if stages == 1:
        return
    if stages > spec.layers:
        raise InputError(field, stages, f"at most {spec.layers}, as many as {spec.name} has layers")
    ordering = build_policy("ordering", scenario.scheduler.ordering, "scheduler.ordering")
    if isinstance(ordering, GroupOrdering):
        name = scenario.scheduler.ordering["name"]
        raise InputError(field, stages, f"1 with the ordering {name}, whose groups are counted in one batch")
    if scenario.memory.tiers or scenario.scheduler.preemption.mode == "swap":
        raise InputError(field, stages, "1 with memory.tiers or preemption by swap, which stop one batch alone")
