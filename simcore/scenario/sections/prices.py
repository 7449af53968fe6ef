"""Where the prices of a scenario's steps come from."""

from typing import Annotated, Literal

from pydantic import Field

from simcore.core.bounds import MOST_COUNT
from simcore.cost.assumptions import HostOverhead, RooflineEfficiency
from simcore.engines import Producer
from simcore.scenario.sections.bounds import KernelSeconds, Share, StepSeconds
from simcore.workload.config.section import Section, Text
from simcore.workload.lengths import MAX_TOKENS

ExpertWeights = Annotated[list[Annotated[float, Field(ge=0, le=1e9)]], Field(min_length=1, max_length=65536)]
_HOST = HostOverhead()
_ROOFLINE = RooflineEfficiency()


class Host(Section):
    """What the host takes (see ``simcore.cost.assumptions.HostOverhead``)."""

    step_s: StepSeconds = _HOST.step_s
    """Time that the host adds to every step, seconds."""
    per_request_s: KernelSeconds = _HOST.per_request_s
    """Time that it adds for each request of a step, seconds."""
    launch_s: KernelSeconds = _HOST.launch_s
    """Least time of each kernel in a step that is no CUDA graph, seconds."""
    layer_s: KernelSeconds = _HOST.layer_s
    """Least time of each layer in such a step, beside its kernels, seconds."""
    max_cudagraph_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = _HOST.max_cudagraph_tokens
    """Most tokens of a step that is a CUDA graph."""
    mixed_graphs: bool = _HOST.mixed_graphs
    """Whether steps with prompts are CUDA graphs too. Otherwise decodes alone are."""
    request_s: StepSeconds = _HOST.request_s
    """Time from arrival to the queue and from the engine back to the client, together, seconds."""
    per_prompt_token_s: KernelSeconds = _HOST.per_prompt_token_s
    """Time to tokenise a token of a prompt, one prompt at a time, seconds."""
    async_scheduling: bool = _HOST.async_scheduling
    """Whether a step is scheduled while the one before runs."""
    compiled: bool = _HOST.compiled
    """Whether layers are compiled. Launching them is then launching kernels alone."""
    linear_prompt_s: StepSeconds = _HOST.linear_prompt_s
    """Wait for the host in each layer of linear attention of a step with prompts, seconds."""


class Efficiency(Section):
    """Shares of datasheet peaks that kernels reach, for roofline prices (see ``simcore.cost.assumptions``)."""

    matmul_compute: Share = _ROOFLINE.matmul_compute
    """Share of the peak rate that large GEMMs reach."""
    matmul_memory: Share = _ROOFLINE.matmul_memory
    """Share of the memory bandwidth that small GEMMs reach."""
    widened_memory: Share = _ROOFLINE.widened_memory
    """The same of GEMMs whose weights are widened to 16 bits on the way."""
    attention_compute: Share = _ROOFLINE.attention_compute
    """Share of the peak rate that prefill attention reaches."""
    attention_memory: Share = _ROOFLINE.attention_memory
    """Share of the memory bandwidth that decode attention reaches."""
    kernel_floor_s: KernelSeconds = _ROOFLINE.kernel_floor_s
    """Least time of a kernel, seconds."""
    interconnect: Share = _ROOFLINE.interconnect
    """Share of the links' bandwidth that collectives reach."""
    collective_floor_s: KernelSeconds = _ROOFLINE.collective_floor_s
    """Least time of a collective, seconds."""


class Pricing(Section):
    """Where prices of kernels come from."""

    profile: Text = "auto"
    """``auto``, ``roofline``, the name of a kernel profile (``vllm-0.19.0``), or the path of a folder with one."""
    expert_kernels: Text = "auto"
    """Kernels of an MoE model's experts by the profile's name for them (``marlin``). ``auto``: the engine's choice."""
    quantised_within: list[Producer] | None = None
    """Which of ``norm``, ``attention``, ``activation`` and ``permutation`` write results quantised. ``null``: as the
    engine's preset says."""
    all_reduce_norm_bytes: Annotated[int, Field(ge=0, le=MOST_COUNT)] | None = None
    """Most bytes of an all-reduce that norms its sum. ``null``: as the engine's preset says."""
    routing: Literal["balanced", "power-law"] | ExpertWeights = "power-law"
    """How tokens spread over experts: ``balanced``, ``power-law`` (a mild skew), or a weight for each expert."""
