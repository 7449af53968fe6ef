"""From a measured engine run to the scenario that repeats it, as its harness ran it."""

from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from math import ceil
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict

from simcore.fidelity.case import Case, Refusal
from simcore.fidelity.engine_runs import EngineRun
from simcore.fidelity.known_names import known_names
from simcore.hardware import load_accelerator
from simcore.models import MixtureOfExperts, load_model

SHORTEST_SHARE = 0.8
"""The harness draws lengths uniformly from this share of the stated length up to all of it."""
REQUESTS_PER_CLIENT = 10
"""Measured requests per unit of concurrency, where a setup states no other number. Twice the concurrency warms the
server up before and is answered in full before measurement begins; an idle simulated server keeps nothing of that, so
the scenario leaves it out."""

MOST_DEVICES = 8
"""Accelerators of the nodes on which the harness starts single engines; rows of more sum up several."""

_PRECISIONS = {"": "bf16", "int4_wo": "int4", "fp8_block": "fp8"} | {
    name: name for name in ("bf16", "fp16", "fp8", "nvfp4")
}
_CHECKPOINT_PRECISION = {"gpt-oss-120b": "mxfp4", "gpt-oss-20b": "mxfp4"}
"""Models that are served in the precision they were published in, whatever a row calls it."""
_CHECKPOINT_FORMATS = {
    ("deepseek-v3", "nvfp4"): "nvfp4-no-qkv",
    ("kimi-k2.5", "nvfp4"): "nvfp4-experts",
    ("kimi-k2.5", "int4"): "int4-experts",
    ("kimi-k2.5", "fp8"): "fp8-block",
}
"""What a precision stands for in the checkpoint that is served of a model: DeepSeek-R1-0528-FP4-V2 (the harness's
.github/configs/nvidia-master.yaml), Kimi-K2.5-NVFP4, Kimi-K2.5 as it is published, and Kimi-K2-Instruct."""
_SIMULATED_PRECISIONS = ("bf16", "fp16", "fp8", "fp8-block", "mxfp4", "int4-experts")
_TRT_ALIGNMENT_TOKENS = 64
_HOST_EXPOSED = {"step_s": 1e-3, "per_request_s": 2.5e-5}
"""The host of an engine that does not prepare the next step while kernels run, as vLLM did only if asked before 0.14.
Assumed: a quarter of what was profiled of vLLM in 2024, before its engine was written anew (4 ms of waiting in a step,
vllm-project/vllm issue 6854; 0.1 ms for each request, issue 6913)."""


class Setup(BaseModel):
    """One entry of ``harness.yaml``: how an engine was started for some models on some accelerators, and asked.

    ``harness`` tells for rows of which harness it is; "any" where rows of an unknown one repeat those of the known. The
    token budget is ``max_batched_tokens``, or the row's own: its running requests, its prompt and
    ``tokens_beyond_prompt``. ``expert_parallel`` and ``attention_data_parallel`` tell what a script did with a row's
    accelerators whatever the row says.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    engine: str
    harness: Literal["known", "unknown", "any"] = "known"
    models: list[str] | None = None
    accelerators: list[str] | None = None
    precisions: list[str] | None = None
    versions: list[str] | None = None
    measured_before: date | None = None
    least_concurrency: int = 1
    least_prompt_tokens: int = 1
    lengths: list[int] | None = None
    expert_ranks: int | None = None
    batching: str | None = None
    max_running_requests: int | Literal["concurrency"] | None = None
    max_batched_tokens: int | None = None
    room_for_prompt: bool = False
    tokens_beyond_prompt: int | None = None
    receive_interval_steps: int | None = None
    expert_kernels: str | None = None
    expert_parallel: bool | None = None
    attention_data_parallel: bool = False
    graph_tokens: int | None = None
    mixed_graphs: bool | None = None
    overlapped: bool | None = None
    kv_cache: Literal["bf16", "fp8", "as weights"] = "bf16"
    gpu_memory_utilization: float | None = None
    requests_per_client: int = REQUESTS_PER_CLIENT
    most_requests: int | None = None
    source: str

    @property
    def is_known(self) -> bool:
        """Whether the known harness asked: with lengths that vary, and as its scripts say."""
        return self.harness != "unknown"

    def fits(self, run: EngineRun, named: "_Named", concurrency: int) -> bool:
        """Whether a run meets the conditions; one of no stated date counts as late."""
        on = run.measured_on
        return (
            named.engine == self.engine
            and (self.harness == "any" or run.known_harness == self.is_known)
            and (self.models is None or named.model in self.models)
            and (self.accelerators is None or named.accelerator in self.accelerators)
            and (self.precisions is None or named.precision in self.precisions)
            and (self.versions is None or run.version in self.versions)
            and concurrency >= self.least_concurrency
            and run.prompt_tokens >= self.least_prompt_tokens
            and (self.lengths is None or self.lengths == [run.prompt_tokens, run.output_tokens])
            and (self.expert_ranks is None or self.expert_ranks == named.parallel.get("expert_parallel", 1))
            and (self.measured_before is None or (on is not None and on < self.measured_before))
        )

    def requests(self, concurrency: int) -> int:
        """How many requests were measured."""
        requests = self.requests_per_client * concurrency
        return requests if self.most_requests is None else min(requests, self.most_requests)

    def split(self, parallel: dict[str, int]) -> dict[str, int]:
        """How the accelerators were used, as fields of ``cluster``, given how the row says they were."""
        if self.attention_data_parallel:
            devices = parallel.get("tensor_parallel", 1) * parallel.get("data_parallel", 1)
            return {"data_parallel": devices, "expert_parallel": devices}
        if self.expert_parallel is None:
            return parallel
        kept = {name: size for name, size in parallel.items() if name != "expert_parallel"}
        return kept | ({"expert_parallel": kept["tensor_parallel"]} if self.expert_parallel else {})

    def token_budget(self, concurrency: int, prompt_tokens: int) -> int | None:
        """Tokens that a step may hold; None for the engine preset's."""
        if self.tokens_beyond_prompt is not None:
            return concurrency + prompt_tokens + self.tokens_beyond_prompt
        if not self.room_for_prompt:
            return self.max_batched_tokens
        blocks = ceil((concurrency + prompt_tokens + _TRT_ALIGNMENT_TOKENS) / _TRT_ALIGNMENT_TOKENS)
        return max(self.max_batched_tokens or 0, blocks * _TRT_ALIGNMENT_TOKENS)


@cache
def setups() -> tuple[Setup, ...]:
    """The entries of ``harness.yaml``, in order."""
    text = (files("simcore.fidelity") / "harness.yaml").read_text(encoding="utf-8")
    return tuple(Setup.model_validate(entry) for entry in yaml.safe_load(text))


def case_of(run: EngineRun) -> Case | Refusal:
    """The scenario of a row, or the reason why it has none."""
    named = _named(run)
    labels = labels_of(run, named)
    if isinstance(named, str):
        return Refusal(run.name, labels, named)
    concurrency = _concurrency(run)
    if isinstance(concurrency, str):
        return Refusal(run.name, labels, concurrency)
    measured = {"ttft_s.mean": run.ttft_s, "tpot_s.mean": run.tpot_s}
    setup = next(setup for setup in setups() if setup.fits(run, named, concurrency))
    document = _document(setup, run, named, concurrency)
    labels |= _split_labels(document["cluster"])
    return Case(run.name, labels, document, measured, () if setup.is_known else _plausible(document))


@dataclass(frozen=True, slots=True)
class _Named:
    engine: str
    model: str
    accelerator: str
    precision: str
    parallel: dict[str, int]


def _named(run: EngineRun) -> _Named | str:
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
    return _Named(names.engines[run.engine], model, accelerator, precision, parallel)


def _parallel(run: EngineRun) -> dict[str, int] | str:
    """How a row was split, as fields of ``cluster``, or why that cannot be told.

    Rows of the known harness state a product where devices and experts were split by the same number: 8 devices with
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
    stated = run.expert_precision if is_mixture(model) else run.gemm_precision
    precision = _PRECISIONS.get(stated, stated)
    if (model, precision) in _CHECKPOINT_FORMATS:
        return _CHECKPOINT_FORMATS[model, precision]
    published = load_model(model).dtype
    return published if precision == "fp8" and published.startswith("fp8") else precision


def is_mixture(model: str) -> bool:
    """Whether a known model has routed experts."""
    return any(isinstance(group.feed_forward, MixtureOfExperts) for group in load_model(model).layer_groups)


def _concurrency(run: EngineRun) -> int | str:
    if run.concurrency is None:
        return run.batch_size or "no concurrency stated"
    # Rows that state data parallelism give the batch of one rank.
    per_rank = run.concurrency // run.attention_data_parallel
    if run.batch_size not in (None, run.concurrency, per_rank):
        return "a concurrency that several workers share"
    return run.concurrency


def labels_of(run: EngineRun, named: _Named | str) -> dict[str, str]:
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
        "kind": "unknown" if isinstance(named, str) else ("MoE" if is_mixture(model) else "dense"),
        "precision": named if isinstance(named, str) else named.precision,
        "lengths": f"{run.prompt_tokens}/{run.output_tokens}",
        "concurrency": str(run.concurrency or run.batch_size),
    } | _split_labels(parallel)


def _split_labels(parallel: dict[str, Any]) -> dict[str, str]:
    return {
        "tensor_parallel": str(parallel.get("tensor_parallel", 1)),
        "experts_and_data": f"{parallel.get('expert_parallel', 1)}/{parallel.get('data_parallel', 1)}",
    }


def _document(setup: Setup, run: EngineRun, named: _Named, concurrency: int) -> dict[str, Any]:
    parallel = setup.split(named.parallel)
    memory: dict[str, Any] = {"prefix_caching": False}
    document: dict[str, Any] = {
        "model": named.model,
        "engine": named.engine,
        "cluster": {"accelerator": named.accelerator} | parallel,
        "memory": memory,
        "precision": {"weights": named.precision, "kv_cache": setup.kv_cache},
        "workload": {
            "requests": setup.requests(concurrency),
            "arrivals": {"name": "closed-loop", "concurrency": concurrency},
            "prompt_tokens": _length(run.prompt_tokens, setup.is_known),
            "output_tokens": _length(run.output_tokens, setup.is_known),
        },
    }
    if setup.kv_cache == "as weights":
        document["precision"]["kv_cache"] = "fp8" if named.precision.startswith(("fp8", "nvfp4")) else "bf16"
    batching = _batching(setup, concurrency, run.prompt_tokens, parallel.get("data_parallel", 1))
    if batching:
        document["scheduler"] = {"batching": batching}
    if setup.expert_kernels is not None:
        document["pricing"] = {"profile": "auto", "expert_kernels": setup.expert_kernels}
    host = {name: getattr(setup, name) for name in ("graph_tokens", "mixed_graphs", "overlapped")}
    document["host"] = {name: value for name, value in host.items() if value is not None}
    if setup.gpu_memory_utilization is not None:
        memory["gpu_memory_utilization"] = setup.gpu_memory_utilization
    return document


def _batching(setup: Setup, concurrency: int, prompt_tokens: int, data_groups: int) -> dict[str, Any]:
    """Settings of a scenario count for all data groups together, as SGLang's do; those of other engines for each."""
    if setup.engine == "sglang":
        data_groups = 1
    slots = setup.max_running_requests
    budget = setup.token_budget(concurrency, prompt_tokens)
    settings = {
        "name": setup.batching,
        "max_running_requests": slots * data_groups if isinstance(slots, int) else slots and concurrency,
        "max_batched_tokens": budget and budget * data_groups,
        "receive_interval_steps": setup.receive_interval_steps,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _plausible(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Setups that nobody rules out either: the preset's token budget, a host whose work no kernel hides, and both."""
    batching = {key: value for key, value in document["scheduler"]["batching"].items() if key != "max_batched_tokens"}
    preset_budget = {"scheduler": {"batching": batching}}
    exposed = {"host": document["host"] | _HOST_EXPOSED}
    return [document | change for change in (preset_budget, exposed, preset_budget | exposed)]


def _length(tokens: int, varied: bool) -> dict[str, Any]:
    """Lengths as the known harness draws them; others state one length, and tools that keep to it."""
    if not varied:
        return {"name": "fixed", "tokens": tokens}
    return {"name": "uniform", "low": max(1, int(SHORTEST_SHARE * tokens)), "high": tokens}
