"""Which ways of splitting a model over accelerators go together, and with what else."""

from policies.ordering import GroupOrdering
from simcore.core.errors import InputError
from simcore.cost.profile_choice import AUTO
from simcore.cost.split import Split, busiest_load
from simcore.hardware import Accelerator
from simcore.memory.capacity import tensor_parallel_reach
from simcore.models import (
    LightningAttention,
    LinearAttention,
    MixtureOfExperts,
    ModelSpec,
    ShortConvolution,
    StateSpace,
)
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import build_policy

_HEADS = {
    LinearAttention: "key heads of linear attention",
    StateSpace: "heads of state spaces",
    LightningAttention: "heads of lightning attention",
    ShortConvolution: "channels of convolutions",
}
"""What ranks divide up of layers without query heads."""


def check_parallelism(scenario: Scenario, spec: ModelSpec, accelerator: Accelerator) -> None:
    """Raise ``InputError`` for a split that the model, the accelerator or the rest of the scenario has no room for."""
    _check_tensor_parallel(scenario.cluster.tensor_parallel, spec, accelerator)
    _check_pipeline_parallel(scenario, spec)
    _check_expert_parallel(scenario, spec)
    _check_context_parallel(scenario, spec)


def split_of(scenario: Scenario) -> Split:
    """How a stage is divided; experts that are chosen as often as weights say load the fullest rank the more."""
    cluster, routing = scenario.cluster, scenario.pricing.routing
    load = busiest_load(tuple(routing), cluster.expert_parallel) if isinstance(routing, list) else 1.0
    sizes = cluster.tensor_parallel, cluster.data_parallel, cluster.expert_parallel
    return Split(*sizes, load, cluster.context_parallel)


def _check_tensor_parallel(ranks: int, spec: ModelSpec, accelerator: Accelerator) -> None:
    field = "cluster.tensor_parallel"
    reach = tensor_parallel_reach(accelerator)
    if ranks > reach:
        raise InputError(field, ranks, f"at most {reach}, since no more {accelerator.name} can work as one")
    for attention in (group.attention for group in spec.layer_groups):
        if attention is not None and attention.query_heads % ranks:
            kind = _HEADS.get(type(attention), "query heads")
            raise InputError(field, ranks, f"a divisor of the {attention.query_heads} {kind} of {spec.name}")


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


def _check_expert_parallel(scenario: Scenario, spec: ModelSpec) -> None:
    cluster, routing = scenario.cluster, scenario.pricing.routing
    data, expert = cluster.data_parallel, cluster.expert_parallel
    blocks = [group.feed_forward for group in spec.layer_groups]
    counts = [block.experts for block in blocks if isinstance(block, MixtureOfExperts)]
    groups = scenario.scheduler.batching.get("data_parallel_ranks", data)
    if groups != data:
        raise InputError(
            "scheduler.batching.data_parallel_ranks", groups, f"{data}, as cluster.data_parallel, or nothing"
        )
    field = "cluster.expert_parallel" if expert > 1 else "cluster.data_parallel"
    if (data > 1 or expert > 1) and not counts:
        raise InputError(field, max(data, expert), f"1, since {spec.name} has no experts; cluster.replicas has copies")
    if any(count % expert for count in counts):
        raise InputError("cluster.expert_parallel", expert, f"a divisor of the {counts[0]} experts of {spec.name}")
    devices = cluster.tensor_parallel * data
    if data > 1 and expert != devices:
        expected = f"{devices}, as many as tensor and data parallel ranks, where there are data parallel ones"
        raise InputError("cluster.expert_parallel", expert, expected)
    if devices % expert:
        expected = f"a divisor of cluster.tensor_parallel, {cluster.tensor_parallel}"
        raise InputError("cluster.expert_parallel", expert, expected)
    if scenario.pricing.expert_kernels != AUTO and not counts:
        expected = f"{AUTO!r}, since {spec.name} has no experts"
        raise InputError("pricing.expert_kernels", scenario.pricing.expert_kernels, expected)
    if isinstance(routing, list):
        if not counts or len(routing) != counts[0]:
            expected = (
                f"a weight for each of the {counts[0]} experts" if counts else "no weights for a model without experts"
            )
            raise InputError("pricing.routing", f"{len(routing)} weights", expected)
        if not sum(routing):
            raise InputError("pricing.routing", "all 0", "some weight above 0")


def _check_context_parallel(scenario: Scenario, spec: ModelSpec) -> None:
    cluster = scenario.cluster
    if cluster.context_parallel > 1 and spec.has_linear_attention:
        expected = f"1, since {spec.name} has linear attention, whose states are not divided by context"
        raise InputError("cluster.context_parallel", cluster.context_parallel, expected)
    others = ("pipeline_parallel", "data_parallel", "expert_parallel")
    beside = [name for name in others if getattr(cluster, name) > 1]
    if cluster.context_parallel > 1 and beside:
        expected = f"1 beside cluster.{beside[0]}, as what ranks then pass on is not priced"
        raise InputError("cluster.context_parallel", cluster.context_parallel, expected)
