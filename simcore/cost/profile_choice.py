"""Which kernel profile a run prices with."""

import re
from functools import lru_cache

from simcore.cost.calibrated import KernelProfile, available_profiles, load_profile
from simcore.errors import UnknownNameError
from simcore.models import LatentAttention, MixtureOfExperts, ModelSpec

AUTO, ROOFLINE = "auto", "roofline"
_PROFILES_OF = {"vllm-v1": "vllm", "sglang": "sglang", "trtllm": "trtllm"}
"""The engine whose kernels a preset runs."""
_STAND_IN = "vllm"
"""The engine whose kernels stand for those of a preset that none were measured of, or of which some lack."""
LATENT_KINDS = frozenset({"mla_context", "mla_generation"})
_COLLECTIVES = frozenset({"collective"})
_MAY_LACK = (frozenset[str](), LATENT_KINDS, _COLLECTIVES, LATENT_KINDS | _COLLECTIVES)
"""What a profile is taken without where none has it, rather than none be taken."""

_load = lru_cache(maxsize=16)(load_profile)
"""Reading a profile takes longer than many a run; variants of one scenario share it."""


def needed_kinds(spec: ModelSpec, ranks: int) -> frozenset[str]:
    """The kernel kinds that a model runs on so many tensor-parallel ranks."""
    kinds = {"gemm"}
    for group in spec.layer_groups:
        latent = isinstance(group.attention, LatentAttention)
        kinds |= LATENT_KINDS if latent else {"context_attention", "generation_attention"}
        if isinstance(group.feed_forward, MixtureOfExperts):
            kinds.add("moe")
    if ranks > 1:
        kinds.add("collective")
    return frozenset(kinds)


def chosen_profile(
    choice: str, accelerator: str, kinds: frozenset[str], shipped: bool = True, engine: str = "vllm-v1"
) -> KernelProfile | None:
    """The profile that a scenario chooses, None for the roofline.

    "auto" takes, if the accelerator is one that is ``shipped``, the newest profile that has all ``kinds``: of the
    preset's own engine if there is one, else of vLLM, else of any; where none has latent attention or collectives, one
    without.
    Raises ``UnknownNameError`` for a name that is neither, ``FileError`` and ``InputError`` for a broken profile.
    """
    if choice == ROOFLINE:
        return None
    known = available_profiles(accelerator) if shipped else ()
    if choice != AUTO:
        if "/" not in choice and choice not in known:
            raise UnknownNameError("pricing.profile", choice, (AUTO, ROOFLINE, *known))
        return _load(accelerator, choice)
    for wanted in dict.fromkeys(kinds - lacking for lacking in _MAY_LACK):
        for name in sorted(known, key=lambda name: _rank(name, engine), reverse=True):
            profile = _load(accelerator, name)
            if wanted <= set(profile.provenance):
                return profile
    return None


def lent_collectives(profile: KernelProfile | None, accelerator: str, shipped: bool = True) -> KernelProfile | None:
    """The newest profile of an accelerator that is ``shipped`` with measured collectives, for one that lacks them.

    None if the profile has its own, or there is no profile to lend to: collectives hardly depend on the engine.
    """
    if profile is None or profile.collectives is not None or not shipped:
        return None
    found = [_load(accelerator, name) for name in available_profiles(accelerator)]
    having = [other for other in found if other.collectives is not None]
    return max(having, key=lambda other: _rank(other.name.rpartition("/")[2], f"{_STAND_IN}-v1"), default=None)


def _rank(name: str, engine: str) -> tuple[bool, bool, tuple[int, ...]]:
    of, _, version = name.partition("-")
    return of == _PROFILES_OF.get(engine), of == _STAND_IN, _version(version)


def _version(name: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", name))
