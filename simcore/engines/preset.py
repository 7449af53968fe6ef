"""What a preset's file says, checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from simcore.core.errors import InputError, UnknownNameError
from simcore.core.validation import explain
from simcore.core.yaml_text import read_yaml
from simcore.engines.fusion import Fusion
from simcore.engines.launch import Launch
from simcore.engines.version import Versions, split_name

DEFAULT_ENGINE = "vllm-v1"
"""The preset of scenarios that name none."""
_SUFFIX = ".yaml"
FOLDER = Path(__file__).parent
"""Where the files of presets lie."""

Launches = Annotated[int, Field(ge=0, le=1000)]
Multiple = Annotated[int, Field(ge=1, le=1 << 16)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCounts:
    """How many kernels an engine starts for what the simulator prices as one; what a preset leaves out is assumed.

    ``experts``: sorting tokens by experts (three) and the sums that takes, quantising (two), the GEMMs (two, which are
    ``expert_gemms``), activation, sum. ``query_key_norm_across_heads``: squares of queries and keys summed, then both
    scaled. ``shared_expert_gating``: the gate's sigmoid, its product with the shared expert's output, and the sum of
    that and the routed experts'. ``latent_projections``: two norms, the second product that
    absorbs a weight, joining and quantising queries, as far as they are no part of measured attention.
    ``latent_attention``: two norms, splitting, rotating, padding and joining the parts of
    queries and keys, and attention itself; ``uncompiled_latent_attention`` are added where layers are run as they are
    written: views, copies and the modules around these kernels, in launches (fitted, docs/results/fidelity.md).
    ``linear_attention_prompt``: convolution, gates, norms of queries and keys (two), and the rule over chunks of tokens
    (six; flash-linear-attention, ops/gated_delta_rule; recalled). ``linear_attention_decode``: convolution, gates, and
    the rule for one token (vLLM, models/qwen3_next.py; recalled).
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    experts: Launches = 10
    expert_gemms: Launches = 2
    query_key_norm_across_heads: Launches = 4
    shared_expert_gating: Launches = 3
    latent_attention: Launches = 7
    latent_projections: Launches = 5
    uncompiled_latent_attention: Launches = 42
    linear_attention_prompt: Launches = 10
    linear_attention_decode: Launches = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Padding:
    """To what multiples kernels pad the hidden size, and the width of an expert on a rank."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    hidden: Multiple = 1
    width: Multiple = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKernels:
    """The kernels of an engine.

    ``profile`` names whose kernel profiles are its own, None where none were measured. ``fallback_profiles`` are those
    whose kernels stand for what its own lack, the best first; ``fallback_profiles_of`` has other orders for some kinds
    of kernels. ``expert_padding`` is by the name that tables of experts have for kernels. An engine that
    ``fuses_linear_attention_projections`` multiplies once by matrices that checkpoints keep apart.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    profile: str | None = None
    fallback_profiles: list[str] = field(default_factory=list)
    fallback_profiles_of: dict[str, list[str]] = field(default_factory=dict)
    expert_padding: dict[str, Padding] = field(default_factory=dict)
    fuses_linear_attention_projections: bool = False
    launches: LaunchCounts = LaunchCounts()
    fusion: Fusion = field(default_factory=Fusion)

    def fallback_order(self, kind: str) -> list[str]:
        """Whose kernels stand in for a kind, the best first."""
        return self.fallback_profiles_of.get(kind, self.fallback_profiles)

    @property
    def profile_order(self) -> list[str]:
        """Its own kernels, and those that stand in for them."""
        return [*([] if self.profile is None else [self.profile]), *self.fallback_profiles]


ASSUMED_KERNELS = EngineKernels()
"""Those of no engine in particular."""


class EnginePreset(BaseModel):
    """One file: ``host``, ``scheduler`` and ``memory`` as sections of scenarios, and what no scenario states.

    With ``limits_per_data_parallel_rank`` the limits of a step hold for each data-parallel rank; else ranks share them.
    ``launch`` says how its server is started, where it has one. It is also known by its ``aliases``; of ``versions`` a
    scenario may name one.
    """

    model_config = ConfigDict(defer_build=True, extra="forbid", strict=True, frozen=True)

    kernels: EngineKernels
    limits_per_data_parallel_rank: bool
    host: dict[str, Any]
    scheduler: dict[str, Any]
    memory: dict[str, Any]
    launch: Launch | None = None
    aliases: list[str] = []
    versions: Versions | None = None

    @property
    def settings(self) -> Mapping[str, Mapping[str, Any]]:
        """The sections that scenarios override."""
        return {"host": self.host, "scheduler": self.scheduler, "memory": self.memory}


def engine_names() -> tuple[str, ...]:
    """The names of the engine presets, sorted."""
    return tuple(sorted(file.name.removesuffix(_SUFFIX) for file in FOLDER.iterdir() if file.name.endswith(_SUFFIX)))


def load_engine(name: str) -> EnginePreset:
    """A preset by name, or an engine's version as ``vllm@0.12``.

    Raises ``UnknownNameError`` for another name, ``FileError`` and ``InputError`` for its file, and ``InputError`` for
    a version of an engine whose preset knows none.
    """
    base, version = split_name(name)
    preset = _read(str(FOLDER / f"{_file_name(base)}{_SUFFIX}"))
    if version is None:
        return preset
    if preset.versions is None:
        raise InputError("engine", name, f"{base} without a version, as its preset knows none")
    change = preset.versions.change(version)
    if change is None:
        return preset
    kernels = preset.kernels if change.fusion is None else replace(preset.kernels, fusion=change.fusion)
    return preset.model_copy(update={"host": preset.host | change.host, "kernels": kernels})


def default_limits(engine: str, accelerator: str, memory_gib: float) -> dict[str, int]:
    """The limits of a step of an engine's version on an accelerator; nothing where no version is named."""
    preset, version = load_engine(engine), split_name(engine)[1]
    return {} if version is None or preset.versions is None else preset.versions.limits_on(accelerator, memory_gib)


def limit_notices(engine: str, accelerator: str, memory_gib: float, batched_tokens: int | None) -> tuple[str, ...]:
    """That a step of ``batched_tokens`` is the preset's on every accelerator, where the engine's own has another.

    Nothing where a version is named, whose limits follow the accelerator, or where a scenario states its own.
    """
    preset, (name, version) = load_engine(engine), split_name(engine)
    own = preset.scheduler["batching"].get("max_batched_tokens")
    if version is not None or preset.versions is None or batched_tokens != own:
        return ()
    theirs = preset.versions.limits_on(accelerator, memory_gib).get("max_batched_tokens", own)
    if theirs == own:
        return ()
    return (
        f"A step has up to {own:,} tokens, as by {name} on every accelerator; on {accelerator} the engine itself "
        f"takes {theirs:,} by default (engine: {name}@{preset.versions.last} does).",
    )


def version_notices(engine: str) -> tuple[str, ...]:
    """That another version stands for the one that is named, if so."""
    preset, (name, version) = load_engine(engine), split_name(engine)
    stand_in = None if version is None or preset.versions is None else preset.versions.stand_in(version)
    if stand_in is None:
        return ()
    return (f"{name} {version} is not among the versions that its preset knows: {stand_in} stands for it.",)


def _file_name(base: str) -> str:
    """The preset of a name or alias."""
    names = engine_names()
    if base in names:
        return base
    found = next((name for name in names if base in _read(str(FOLDER / f"{name}{_SUFFIX}")).aliases), None)
    if found is None:
        raise UnknownNameError("engine", base, names)
    return found


@lru_cache(maxsize=64)
def _read(path: str) -> EnginePreset:
    try:
        return EnginePreset.model_validate(read_yaml(Path(path)))
    except ValidationError as error:
        raise explain(error, EnginePreset, f"{path}: ") from error
