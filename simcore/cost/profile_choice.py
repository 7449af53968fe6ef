"""Which kernel profile a run prices with."""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from simcore.cost.calibrated import KernelProfile, available_profiles, load_profile
from simcore.cost.kernel_prices import expert_dtypes, table_dtype
from simcore.errors import InputError, Phrase, UnknownNameError
from simcore.models import LatentAttention, MixtureOfExperts, ModelSpec
from simcore.models.weight_formats import EXPERTS, weight_format

AUTO, ROOFLINE = "auto", "roofline"
_PROFILES_OF = {"vllm-v1": "vllm", "sglang": "sglang", "trtllm": "trtllm"}
"""The engine whose kernels a preset runs."""
_STAND_IN = "vllm"
"""The engine whose kernels stand for those of a preset that none were measured of, or of which some lack."""
_LATENT_LENDER = "sglang"
"""The preset whose latent attention is lent first: it calls the public kernels that vLLM calls, those of
FlashAttention 3 on Hopper and of FlashInfer on Blackwell."""
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
    choice: str,
    accelerator: str,
    kinds: frozenset[str],
    shipped: bool = True,
    engine: str = "vllm-v1",
    weights: str = "bf16",
) -> KernelProfile | None:
    """The profile that a scenario chooses, None for the roofline.

    "auto" takes, if the accelerator is one that is ``shipped``, the newest profile that has all ``kinds``: of the
    preset's own engine if there is one, else of vLLM, else of any; where none has latent attention or collectives, one
    without. Of the preset's own engine it takes one without latent attention too, if that has products in the format
    ``weights`` and another can lend (``lent_latent``).
    Raises ``UnknownNameError`` for a name that is neither, ``FileError`` and ``InputError`` for a broken profile or one
    of another accelerator; for an accelerator of the user's own any may stand in.
    """
    if choice == ROOFLINE:
        return None
    known = available_profiles(accelerator) if shipped else ()
    if choice != AUTO:
        if len(Path(choice).parts) == 1 and choice not in known:
            raise UnknownNameError("pricing.profile", choice, (AUTO, ROOFLINE, *known))
        profile = _load(accelerator, choice)
        if shipped and profile.accelerator != accelerator:
            raise InputError("pricing.profile", Phrase(f"one of {profile.accelerator}"), f"one of {accelerator}")
        return profile
    names = sorted(known, key=lambda name: _rank(name, engine), reverse=True)
    if kinds >= LATENT_KINDS:
        for name in (name for name in names if name.startswith(f"{_PROFILES_OF.get(engine)}-")):
            profile = _load(accelerator, name)
            lent = lent_latent(profile, accelerator, kinds) is not None and _multiplies(profile, weights)
            if (kinds - LATENT_KINDS if lent else kinds) <= set(profile.provenance):
                return profile
    for wanted in dict.fromkeys(kinds - lacking for lacking in _MAY_LACK):
        for name in names:
            profile = _load(accelerator, name)
            if wanted <= set(profile.provenance):
                return profile
    return None


def lent_latent(
    profile: KernelProfile | None, accelerator: str, kinds: frozenset[str], shipped: bool = True
) -> KernelProfile | None:
    """The newest profile of an accelerator that is ``shipped`` with latent attention, for one that lacks it.

    None if ``kinds`` have no such, the profile has its own, or there is no profile to lend to.
    """
    if profile is None or not shipped or not kinds >= LATENT_KINDS or _has_latent(profile):
        return None
    return _newest(accelerator, LATENT_KINDS, _LATENT_LENDER)


def _has_latent(profile: KernelProfile) -> bool:
    return set(profile.provenance) >= LATENT_KINDS


def _multiplies(profile: KernelProfile, weights: str) -> bool:
    """Whether a profile has products, and experts if any, in a weight format."""
    dtype = table_dtype(weights)
    if dtype is None:
        return False
    experts = profile.experts is None or any(name in profile.expert_dtypes for name in expert_dtypes(dtype))
    others = weight_format(weights).of == EXPERTS or (profile.gemms is not None and dtype in profile.gemms.dtypes)
    return experts and others


def lent_collectives(profile: KernelProfile | None, accelerator: str, shipped: bool = True) -> KernelProfile | None:
    """The newest profile of an accelerator that is ``shipped`` with measured collectives, for one that lacks them.

    None if the profile has its own, or there is no profile to lend to: collectives hardly depend on the engine.
    """
    if profile is None or profile.collectives is not None or not shipped:
        return None
    return _newest(accelerator, _COLLECTIVES)


def lent_elementwise(profile: KernelProfile | None, accelerator: str, shipped: bool = True) -> KernelProfile | None:
    """The newest profile of an accelerator that is ``shipped`` with measured norms and activations, for one without.

    None if the profile has its own, or there is no profile to lend to: they move the same bytes in any engine.
    """
    if profile is None or profile.elementwise is not None or not shipped:
        return None
    return _newest(accelerator, ("elementwise",))


def _newest(accelerator: str, kinds: Iterable[str], engine: str = f"{_STAND_IN}-v1") -> KernelProfile | None:
    """The newest profile of an accelerator that has all ``kinds``, of the engine of a preset if there is one."""
    names = available_profiles(accelerator, kinds)
    return _load(accelerator, max(names, key=lambda name: _rank(name, engine))) if names else None


def _rank(name: str, engine: str) -> tuple[bool, bool, tuple[int, ...]]:
    of, _, version = name.partition("-")
    return of == _PROFILES_OF.get(engine), of == _STAND_IN, _version(version)


def _version(name: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", name))
