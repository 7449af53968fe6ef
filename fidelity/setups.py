"""How measured engines were started and asked, as ``harness.yaml`` says."""

from datetime import date
from functools import cache
from importlib.resources import files
from math import ceil
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from fidelity.engine_runs import EngineRun
from fidelity.run_names import RunNames
from simcore.core.yaml_text import read_yaml

REQUESTS_PER_CLIENT = 10
"""Measured requests per unit of concurrency, where a setup states no other number. Twice the concurrency warms the
server up before and is answered in full before measurement begins; an idle simulated server keeps nothing of that, so
the scenario leaves it out."""
_TRT_ALIGNMENT_TOKENS = 64

_Day = Annotated[date, Field(strict=False)]
"""A day, which YAML has as text."""


class BalancedGroups(BaseModel):
    """How prompts wait for those of other data-parallel ranks: parameters of the batching policy ``group-balanced``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    max_waiting_steps: int
    gathering_steps: int


class WaitingPrompts(BaseModel):
    """How prompts wait for more of them: parameters of the batching policy ``in-flight``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    max_waiting_steps: int
    enough_tokens_share: float


class Setup(BaseModel):
    """One entry of ``harness.yaml``: how an engine was started for some models on some accelerators, and asked.

    ``harness`` is "known" for InferenceX rows and "unknown" for others; "any" where other rows repeat those. The token
    budget is ``max_batched_tokens``, or the row's own: its running requests, its prompt and ``tokens_beyond_prompt``.
    ``expert_parallel`` and ``attention_data_parallel`` tell what a script did with a row's accelerators whatever the
    row says, ``speculative`` that it drafted tokens, which is not simulated, ``exposed_host`` that no kernel hides what
    the host does in a step (``EXPOSED_HOST`` in ``harness.py``), ``prose`` that prompts were text that tokenisers know
    (``PROSE_TOKEN_S``). ``all_reduce_norm_bytes`` is by tensor-parallel ranks. The engine has the traits of an
    ``engine_version``; the version that a row names is a label alone.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    engine: str
    harness: Literal["known", "unknown", "any"] = "known"
    models: list[str] | None = None
    accelerators: list[str] | None = None
    precisions: list[str] | None = None
    versions: list[str] | None = None
    measured_since: _Day | None = None
    measured_before: _Day | None = None
    least_concurrency: int = 1
    least_prompt_tokens: int = 1
    lengths: list[int] | None = None
    tensor_ranks: int | None = None
    expert_ranks: int | None = None
    batching: str | None = None
    max_running_requests: int | Literal["concurrency"] | None = None
    max_batched_tokens: int | None = None
    room_for_prompt: bool = False
    tokens_beyond_prompt: int | None = None
    receive_interval_steps: int | None = None
    expert_kernels: str | None = None
    quantised_within: list[str] | None = None
    all_reduce_norm_bytes: dict[int, int] = {}
    engine_version: str | None = None
    expert_parallel: bool | None = None
    attention_data_parallel: bool = False
    balanced_groups: BalancedGroups | None = None
    waiting_prompts: WaitingPrompts | None = None
    max_cudagraph_tokens: int | None = None
    mixed_graphs: bool | None = None
    async_scheduling: bool | None = None
    exposed_host: bool = False
    step_s: float | None = None
    prose: bool = False
    speculative: bool = False
    kv_cache: Literal["bf16", "fp8", "as weights"] = "bf16"
    gpu_memory_utilization: float | None = None
    requests_per_client: int = REQUESTS_PER_CLIENT
    most_requests: int | None = None
    source: str

    @property
    def is_known(self) -> bool:
        """Whether InferenceX asked: with lengths that vary, and as its scripts say."""
        return self.harness != "unknown"

    def fits(self, run: EngineRun, named: RunNames, concurrency: int) -> bool:
        """Whether a run meets the conditions; one of no stated date is neither before nor since another."""
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
            and (self.tensor_ranks is None or self.tensor_ranks == named.parallel.get("tensor_parallel", 1))
            and (self.expert_ranks is None or self.expert_ranks == named.parallel.get("expert_parallel", 1))
            and (self.measured_since is None or (on is not None and on >= self.measured_since))
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
    return tuple(Setup.model_validate(entry) for entry in read_yaml(files("fidelity") / "harness.yaml"))
