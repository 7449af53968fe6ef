"""What a measured engine run was, in the names that are used here."""

from dataclasses import dataclass
from typing import Any

from fidelity.engine_runs import EngineRun
from fidelity.known_names import known_names
from simcore.hardware import load_accelerator
from simcore.models import MixtureOfExperts, load_model

MOST_DEVICES = 8
"""Accelerators of the nodes on which the harness starts single engines; rows of more sum up several."""

_PRECISIONS = {"": "bf16", "bfloat16": "bf16", "float16": "fp16", "int4_wo": "int4", "fp8_block": "fp8"} | {
    name: name for name in ("bf16", "fp16", "fp8", "nvfp4")
}
_CHECKPOINT_PRECISION = {"gpt-oss-120b": "mxfp4", "gpt-oss-20b": "mxfp4"}
"""Models that are served in the precision they were published in, whatever a row calls it."""
_CHECKPOINT_FORMATS = {
    ("deepseek-v3", "nvfp4"): "nvfp4-no-qkv",
    ("kimi-k2.5", "nvfp4"): "nvfp4-experts",
    ("kimi-k2.5", "int4"): "int4-experts",
    ("kimi-k2.5", "fp8"): "fp8-block",
    ("qwen3.5-397b-a17b", "fp8"): "fp8-block",
    ("qwen3.5-397b-a17b", "nvfp4"): "nvfp4-experts",
}
"""What a precision stands for in the checkpoint that is served of a model: DeepSeek-R1-0528-FP4-V2 (the harness's
.github/configs/nvidia-master.yaml), Kimi-K2.5-NVFP4, Kimi-K2.5 as it is published, Kimi-K2-Instruct, and Qwen3.5's
FP8 and NVFP4 (of the latter that experts alone are in 4 bits; recalled)."""
_SIMULATED_PRECISIONS = ("bf16", "fp16", "fp8", "fp8-block", "mxfp4", "int4-experts")


@dataclass(frozen=True, slots=True)
class RunNames:
    """Of one run; ``parallel`` are the fields of ``cluster`` that say how it was split."""

    engine: str
    model: str
    accelerator: str
    precision: str
    parallel: dict[str, int]


def names_of(run: EngineRun) -> RunNames | str:
    """Engine, model, accelerator and precision as they are called here, or what is missing."""
    names = known_names()
    if run.mode != "agg":
        return "disaggregated prefill and decode" if run.mode == "disagg" else f"unknown mode {run.mode}"
    if run.model in names.unsupported_models:
        return f"{run.model} has {names.unsupported_models[run.model]}, which is not modelled"
    if run.model not in names.models:
        return f"unknown model {run.model}"
    if run.engine not in names.engines:
        return f"unknown engine {run.engine}"
    if run.system not in names.accelerators:
        return f"unknown accelerator {run.system}"
    parallel = _parallel(run)
    if isinstance(parallel, str):
        return parallel
    model, accelerator = names.models[run.model], names.accelerators[run.system]
    precision = _precision(run, model)
    if precision.startswith("nvfp4"):
        if "fp4" not in load_accelerator(accelerator).peak_flops_per_s:
            return f"precision nvfp4 on {accelerator}, which does not multiply in 4 bits"
    elif precision not in _SIMULATED_PRECISIONS:
        return f"precision {precision}"
    return RunNames(names.engines[run.engine], model, accelerator, precision, parallel)


def _parallel(run: EngineRun) -> dict[str, int] | str:
    """How a row was split, as fields of ``cluster``, or why that cannot be told.

    InferenceX rows state a product where devices and experts were split by the same number: 8 devices with
    experts of their own are called 8 x 8 for the experts, and 64 of tensor parallelism, or of data parallelism where
    attention had requests of its own on each. So do some where 4 devices with experts of their own are called 16,
    of 4 for tensor and 4 for data parallelism: more than the nodes have.
    """
    tensor, data, pipeline = run.tensor_parallel, run.attention_data_parallel, run.pipeline_parallel
    experts, across = run.expert_parallel, run.expert_tensor_parallel
    if run.known_harness and experts == across > 1:
        if (tensor, data) == (experts * across, 1):
            return {"tensor_parallel": experts, "expert_parallel": experts}
        if (tensor, data) == (1, experts * across):
            return {"data_parallel": experts, "expert_parallel": experts}
    if run.known_harness and tensor * data > MOST_DEVICES:
        if tensor == data and (experts, across) == (tensor * data, 1):
            return {"tensor_parallel": tensor, "expert_parallel": tensor}
        return "more devices than an engine of a known script"
    if experts * across not in (1, tensor * data):
        return f"experts split over {experts * across} of {tensor * data} devices"
    found = {"tensor_parallel": tensor, "data_parallel": data, "pipeline_parallel": pipeline}
    found |= {"expert_parallel": experts}
    return {name: size for name, size in found.items() if size > 1 or name == "tensor_parallel"}


def _precision(run: EngineRun, model: str) -> str:
    """The weights' precision; where experts and the rest differ in kind, that of the experts."""
    if model in _CHECKPOINT_PRECISION:
        return _CHECKPOINT_PRECISION[model]
    stated = run.expert_precision if is_moe(model) else run.gemm_precision
    precision = _PRECISIONS.get(stated, stated)
    if (model, precision) in _CHECKPOINT_FORMATS:
        return _CHECKPOINT_FORMATS[model, precision]
    published = load_model(model).dtype
    return published if precision == "fp8" and published.startswith("fp8") else precision


def is_moe(model: str) -> bool:
    """Whether a known model has routed experts."""
    return any(isinstance(group.feed_forward, MixtureOfExperts) for group in load_model(model).layer_groups)


def labels_of(run: EngineRun, named: RunNames | str) -> dict[str, str]:
    """What a row was, for grouping; accelerator and engine as they are called here where they are known."""
    names = known_names()
    model = names.models.get(run.model, run.model)
    parallel = {"tensor_parallel": run.tensor_parallel} if isinstance(named, str) else named.parallel
    return {
        "harness": "known" if run.known_harness else "unknown",
        "engine": names.engines.get(run.engine, run.engine),
        "version": run.version or "unstated",
        "accelerator": names.accelerators.get(run.system, run.system),
        "model": model,
        "kind": "unknown" if isinstance(named, str) else ("MoE" if is_moe(model) else "dense"),
        "precision": named if isinstance(named, str) else named.precision,
        "lengths": f"{run.prompt_tokens}/{run.output_tokens}",
        "concurrency": str(run.concurrency or run.batch_size),
    } | split_labels(parallel)


def split_labels(parallel: dict[str, Any]) -> dict[str, str]:
    """The labels that say how a run was split, given fields of ``cluster``."""
    return {
        "tensor_parallel": str(parallel.get("tensor_parallel", 1)),
        "experts_and_data": f"{parallel.get('expert_parallel', 1)}/{parallel.get('data_parallel', 1)}",
    }
