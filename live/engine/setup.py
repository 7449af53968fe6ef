"""From a scenario and a model to a live replica: what is simulated on a virtual clock, on the wall clock."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from live.engine.executor import Runner
from live.engine.replica import LiveReplica
from live.engine.wall_clock import WallClock
from live.model.config import DecoderConfig
from live.opening import OpenModel
from live.paging.kv_tensors import kv_block_bytes
from live.runner import ModelRunner, make_runner
from simcore.build.cluster import SimulatedCluster
from simcore.build.replica import replica_parts
from simcore.build.simulation import Simulation
from simcore.core.clock import to_ns
from simcore.core.errors import InputError
from simcore.memory import KVBlockManager
from simcore.models import weight_bytes
from simcore.recording.recorder import Recorder
from simcore.service.replica_config import ReplicaConfig

_CPU_KV_BYTES = 2**31
"""Keys and values on a CPU, where a scenario does not say how many blocks there are."""
_KEPT_BYTES = 2 * 2**30
"""Memory of a GPU that activations and CUDA graphs may take."""
_HOST = {
    "step_s": 0.0, "per_request_s": 0.0, "launch_s": 0.0, "layer_s": 0.0, "request_s": 0.0, "per_prompt_token_s": 0.0,
    "linear_prompt_s": 0.0, "async_scheduling": False,
}  # fmt: skip
"""A live engine's own host takes what it takes, and schedules a step when the one before has ended."""
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
"""Number formats by name."""


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """How a model is run: on which ``device``, in which ``dtype`` ("fp32", "fp16", "bf16"; None: by the device).

    The rest as ``live.runner.make_runner`` takes it.
    """

    device: str = "cpu"
    dtype: str | None = None
    backend: str | None = None
    weight_format: str = "plain"
    threads: int | None = None

    @property
    def number_format(self) -> str:
        """That of weights, activations, keys and values; raises ``InputError`` for one that there is not."""
        name = self.dtype or ("fp32" if self.device == "cpu" else "bf16")
        if name not in DTYPES:
            raise InputError("dtype", name, f"one of {', '.join(DTYPES)}")
        return name


@dataclass(frozen=True, slots=True)
class LiveSetup:
    """A checked scenario, as it is simulated too, and the runner of its model."""

    simulation: Simulation
    runner: ModelRunner
    device: torch.device

    @classmethod
    def prepare(
        cls, model: OpenModel, document: Mapping[str, Any], base_dir: Path, settings: LiveSettings | None = None
    ) -> "LiveSetup":
        """Check a scenario, load the weights and take memory for keys and values.

        Number formats and host overheads are not the scenario's but the live engine's own. Raises ``ServetwinError``
        for what is wrong with scenario or weights, or is more than the live engine does.
        """
        settings = settings or LiveSettings()
        document = live_document(document, model.config, settings)
        simulation = Simulation.prepare(document, base_dir, model.config.spec)
        check_scenario(simulation)
        swaps = simulation.scenario.scheduler.preemption.mode == "swap"
        dtype = DTYPES[settings.number_format]
        block_size = simulation.scenario.memory.block_size_tokens
        host_bytes = simulation.scenario.memory.swap_space_gb * 1e9 if swaps else 0.0
        runner = make_runner(
            model,
            blocks=simulation.total_blocks,
            block_size=block_size,
            host_blocks=int(host_bytes) // kv_block_bytes(model.config, block_size, dtype),
            dtype=dtype,
            device=settings.device,
            backend=settings.backend,
            weight_format=settings.weight_format,
            max_context_tokens=simulation.max_context_tokens,
            threads=settings.threads,
        )
        return cls(simulation, runner, torch.device(settings.device))

    def of(self, simulation: Simulation) -> "LiveSetup":
        """The same model for another scenario, which needs no more memory than this one."""
        check_scenario(simulation)
        return replace(self, simulation=simulation)

    def replica(self, clock: WallClock, recorder: Recorder, keep_plans: bool = False) -> SimulatedCluster:
        """The live replica of the scenario, as a cluster of one."""
        vocabulary = self.runner.config.spec.vocabulary_size
        return live_cluster(self.simulation, clock, recorder, self.runner, vocabulary, keep_plans)


def live_cluster(
    simulation: Simulation,
    clock: WallClock,
    recorder: Recorder,
    runner: Runner,
    vocabulary: int,
    keep_plans: bool = False,
    check: bool = False,
) -> SimulatedCluster:
    """A replica of a scenario whose steps a runner computes, as a cluster of one; ``check`` recounts all books."""
    scenario = simulation.scenario
    parts = replica_parts(scenario, simulation.spec, simulation.memory, clock, simulation.cost, numbered=True)
    if not isinstance(parts.memory, KVBlockManager):
        kind = "tenant_shares" if scenario.memory.prefix_cache.tenant_shares else "index"
        value = getattr(scenario.memory.prefix_cache, kind)
        raise InputError(f"memory.prefix_cache.{kind}", value, "what a live engine has: hash, and no shares of tenants")
    config = ReplicaConfig(
        to_ns(scenario.measurement.warmup_s),
        fast_forward=False,
        check=check,
        clients_give_up=scenario.workload.gives_up,
    )
    replica = LiveReplica(clock, parts.scheduler, simulation.cost, recorder, config, runner, vocabulary, keep_plans)
    # What links would take is not what copies take.
    return SimulatedCluster.of_one(replica, replace(parts.offloading, links=()))


def live_document(document: Mapping[str, Any], config: DecoderConfig, settings: LiveSettings) -> dict[str, Any]:
    """The scenario as a live engine runs it: its own formats and host, and blocks by the memory that there is."""
    name = settings.number_format
    memory = {"null_blocks": 0, **_mapping(document, "memory")}
    if "num_gpu_blocks" not in memory:
        memory["num_gpu_blocks"] = _blocks(config, memory, settings)
    cluster = {"accelerator": "cpu-generic", **_mapping(document, "cluster")}
    return {
        **document,
        "cluster": cluster,
        "memory": memory,
        "precision": {"weights": name, "kv_cache": name},
        "host": _HOST,
    }


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    section = document.get(key)
    return section if isinstance(section, Mapping) else {}


def _blocks(config: DecoderConfig, memory: Mapping[str, Any], settings: LiveSettings) -> int:
    """Blocks that memory has room for beside the weights."""
    block_size = memory.get("block_size_tokens", 16)
    if not isinstance(block_size, int) or block_size < 1:
        return 1  # which is told as soon as the scenario is checked
    block_bytes = kv_block_bytes(config, block_size, DTYPES[settings.number_format])
    if settings.device == "cpu":
        return max(_CPU_KV_BYTES // block_bytes, 1)
    free_bytes, _ = torch.cuda.mem_get_info(torch.device(settings.device))
    return max((free_bytes - weight_bytes(config.spec) - _KEPT_BYTES) // block_bytes, 1)


def check_scenario(simulation: Simulation) -> None:
    """Refuse what the live engine does not do; raises ``InputError``."""
    scenario, memory = simulation.scenario, simulation.scenario.memory
    if scenario.cluster.pools is not None:
        names = [pool.name for pool in scenario.cluster.pools]
        raise InputError("cluster.pools", names, "none: a live engine has one device")
    for field in ("replicas", "tensor_parallel", "pipeline_parallel", "data_parallel", "context_parallel"):
        if (value := getattr(scenario.cluster, field)) != 1:
            raise InputError(f"cluster.{field}", value, "1: a live engine has one device")
    if scenario.cluster.scaling is not None:
        expected = "no scaling: a live engine is one replica"
        raise InputError("cluster.scaling.max_replicas", scenario.cluster.scaling.max_replicas, expected)
    if scenario.faults:
        raise InputError("faults", [fault.name for fault in scenario.faults], "none on a live engine")
    if scenario.adapters is not None:
        raise InputError("adapters.count", scenario.adapters.count, "none on a live engine")
    if memory.tiers:
        raise InputError("memory.tiers", [tier.name for tier in memory.tiers], "none on a live engine")
    if memory.prefix_cache.warm_up_requests:
        expected = "0: what a live engine has in its cache it has computed"
        raise InputError("memory.prefix_cache.warm_up_requests", memory.prefix_cache.warm_up_requests, expected)
    if simulation.memory.layout.releases:
        raise InputError("model", scenario.model, "one without sliding windows, whose blocks a live engine would keep")
