"""What steps of a scenario cost, from its model, its accelerator and its host."""

from dataclasses import replace
from pathlib import Path

from simcore.build.memory_plan import kv_format, weight_dtype
from simcore.build.parallelism import split_of
from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import to_s
from simcore.core.decode_pool import DecodePool
from simcore.cost.assumptions import ROUTING, HostOverhead, RooflineEfficiency
from simcore.cost.calibrated import KernelProfile
from simcore.cost.fabric import Fabric
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.pipeline import PipelineCost
from simcore.cost.profile_choice import ROOFLINE, chosen_profile, fallback_profiles, needed_kinds
from simcore.cost.roofline import Roofline
from simcore.cost.step_cost import StepCost
from simcore.engines import EngineKernels, load_engine
from simcore.hardware import Accelerator
from simcore.models import ModelSpec
from simcore.models.weight_formats import weight_format
from simcore.scenario import Scenario
from simcore.scheduling.view import StepPrice


def kernel_prices(scenario: Scenario, spec: ModelSpec, accelerator: Accelerator) -> KernelPrices:
    """The prices of single kernels: measured where a profile has them, else by roofline."""
    cluster, choice = scenario.cluster, scenario.pricing.profile
    named = len(Path(cluster.accelerator).parts) == 1
    efficiency = RooflineEfficiency(**scenario.efficiency.model_dump())
    kinds = needed_kinds(spec, cluster.tensor_parallel)
    weights = weight_dtype(scenario, spec)
    engine = _kernels(scenario, weights)
    profile = chosen_profile(choice, accelerator.name, kinds, named, engine, weights)
    return KernelPrices(
        Roofline.of(accelerator, efficiency, weights),
        profile,
        fallback_profiles(kinds, profile, accelerator.name, named, engine),
        Fabric.of(accelerator, cluster.pcie, cluster.network_gb_per_s * 1e9),
        fitted_collectives=choice != ROOFLINE,
        expert_kernels=scenario.pricing.expert_kernels,
        routing=ROUTING if scenario.pricing.routing == "power-law" else "balanced",
        engine=engine,
    )


def _kernels(scenario: Scenario, weights: str) -> EngineKernels:
    """The engine's kernels, with what the scenario has it do within others."""
    kernels, pricing = load_engine(scenario.engine).kernels, scenario.pricing
    fusion = kernels.fusion
    if pricing.quantised_within is not None:
        stored = weight_format(weights)
        quantisation = {**fusion.quantisation, stored.kernels or stored.name: pricing.quantised_within}
        fusion = replace(fusion, quantisation=quantisation)
    if pricing.all_reduce_norm_bytes is not None:
        fusion = replace(fusion, all_reduce_norm_bytes=pricing.all_reduce_norm_bytes)
    return replace(kernels, fusion=fusion)


def host_overhead(scenario: Scenario, profile: KernelProfile | None) -> HostOverhead:
    """What the scenario says of the host, and what a profile measured of it, if it did, added."""
    host = HostOverhead(**scenario.host.model_dump())
    if profile is None or profile.host is None:
        return host
    step_s, per_request_s = host.step_s + profile.host.step_s, host.per_request_s + profile.host.per_request_s
    return replace(host, step_s=step_s, per_request_s=per_request_s)


def step_cost(scenario: Scenario, spec: ModelSpec, prices: KernelPrices, host: HostOverhead) -> StepCost:
    """What steps of a scenario cost at such prices, all layers together."""
    split = split_of(scenario)
    dtype, cache = weight_dtype(scenario, spec), kv_format(scenario, spec)
    return StepCost(spec, prices, host, dtype, cache, split.tensor, split=split)


def pipeline_cost(scenario: Scenario, spec: ModelSpec, prices: KernelPrices, host: HostOverhead) -> PipelineCost | None:
    """The same stage by stage, None where there is one."""
    cluster = scenario.cluster
    if cluster.pipeline_parallel == 1:
        return None
    dtype, cache = weight_dtype(scenario, spec), kv_format(scenario, spec)
    return PipelineCost(spec, prices, host, dtype, cache, split_of(scenario), cluster.pipeline_parallel)


def step_price(cost: StepCost) -> StepPrice:
    """What a policy is told that a step would take in which every chunk completes a prompt, in seconds."""

    def expected_s(plan: BatchPlan, pool: DecodePool) -> float:
        sampled_rows = plan.decoding + len(plan.chunks)
        return to_s(cost.step_ns(plan, pool, sampled_rows)) if sampled_rows else 0.0

    return expected_s
