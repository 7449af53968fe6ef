"""Which kernel profile a run prices with."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path

from simcore.core.errors import InputError, nearest_name
from simcore.cost.calibrated import KernelProfile, available_profiles, load_profile
from simcore.cost.kernel_prices import expert_dtypes, table_dtype
from simcore.engines import DEFAULT_ENGINE, EngineKernels, load_engine
from simcore.models import Attention, LatentAttention, LinearAttention, MixtureOfExperts, ModelSpec
from simcore.models.weight_formats import EXPERTS, weight_format

AUTO, ROOFLINE = "auto", "roofline"
LATENT_PROMPTS, LATENT_DECODES = frozenset({"mla_context"}), frozenset({"mla_generation"})
LATENT_KINDS = LATENT_PROMPTS | LATENT_DECODES
COLLECTIVES = frozenset({"collective"})
EXPERT_KINDS = frozenset({"moe"})
ELEMENTWISE = frozenset({"elementwise"})
LINEAR_KINDS = frozenset({"linear_attention"})
_LENDABLE = (LINEAR_KINDS, LATENT_KINDS, COLLECTIVES, EXPERT_KINDS)
_MAY_LACK = tuple(
    frozenset[str]().union(*lacking)
    for count in range(len(_LENDABLE) + 1)
    for lacking in combinations(_LENDABLE, count)
)
"""What a profile is taken without where none has it, rather than none be taken."""
_load = lru_cache(maxsize=16)(load_profile)
"""Reading a profile takes longer than many a run; variants of one scenario share it."""


def needed_kinds(spec: ModelSpec, ranks: int) -> frozenset[str]:
    """The kernel kinds that a model runs on so many tensor-parallel ranks."""
    kinds = {"gemm"}
    for group in spec.layer_groups:
        if isinstance(group.attention, LinearAttention):
            kinds |= LINEAR_KINDS
        elif isinstance(group.attention, LatentAttention):
            kinds |= LATENT_KINDS
        elif isinstance(group.attention, Attention):
            kinds |= {"context_attention", "generation_attention"}
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
    engine: EngineKernels | None = None,
    weights: str = "bf16",
) -> KernelProfile | None:
    """The profile that a scenario chooses, None for the roofline.

    "auto" takes, if the accelerator is one that is ``shipped``, the newest profile that has all ``kinds``: the
    ``engine``'s own if there is one, else of the first of its ``fallback_profiles``, else any; where none has latent
    attention or collectives, one without. Of the engine's own it takes one without latent attention too, if that has
    GEMMs in the format ``weights`` and another can lend it (``fallback_profile``).
    Raises ``InputError`` for a name that is neither and for a profile of another accelerator, ``FileError`` too for a
    broken one.
    """
    if choice == ROOFLINE:
        return None
    engine = engine or load_engine(DEFAULT_ENGINE).kernels
    known = available_profiles(accelerator) if shipped else ()
    if choice != AUTO:
        if len(Path(choice).parts) == 1 and choice not in known:
            names = sorted((AUTO, ROOFLINE, *known))
            expected = f"one of {', '.join(names)}, or a folder that holds a profile, seen from the scenario's folder"
            raise InputError("pricing.profile", choice, expected, nearest_name(choice, names))
        profile = _load(accelerator, choice)
        if profile.accelerator != accelerator:
            expected = f"a profile of {accelerator}, but it is one of {profile.accelerator}"
            raise InputError("pricing.profile", choice, expected)
        return profile
    names = sorted(known, key=lambda name: _rank(name, engine.profile_order), reverse=True)
    if kinds >= LATENT_KINDS:
        for name in (name for name in names if name.startswith(f"{engine.profile}-")):
            profile = _load(accelerator, name)
            lacking = LATENT_KINDS - set(profile.provenance)
            lendable = all(fallback_profile(frozenset({kind}), profile, accelerator, engine=engine) for kind in lacking)
            if (kinds - lacking if lendable and _multiplies(profile, weights) else kinds) <= set(profile.provenance):
                return profile
    for wanted in dict.fromkeys(kinds - lacking for lacking in _MAY_LACK):
        for name in names:
            profile = _load(accelerator, name)
            if wanted <= set(profile.provenance):
                return profile
    return None


def fallback_profile(
    kinds: frozenset[str],
    profile: KernelProfile | None,
    accelerator: str,
    shipped: bool = True,
    engine: EngineKernels | None = None,
) -> KernelProfile | None:
    """The newest profile of an accelerator that is ``shipped`` with all ``kinds``, for one that lacks some.

    The ``engine`` says whose come first. None if the profile has its own, or there is no profile to lend to.
    Collectives and norms move the same bytes in any engine; experts of bf16 measured under vLLM 0.19 differ little from
    those of 0.24 (docs/results/kernel-fits.md).
    """
    if profile is None or not shipped or set(profile.provenance) >= kinds:
        return None
    engine = engine or load_engine(DEFAULT_ENGINE).kernels
    names = available_profiles(accelerator, kinds)
    order = engine.fallback_order(min(kinds))
    return _load(accelerator, max(names, key=lambda name: _rank(name, order))) if names else None


def fallback_profiles(
    needed: frozenset[str],
    profile: KernelProfile | None,
    accelerator: str,
    shipped: bool = True,
    engine: EngineKernels | None = None,
) -> dict[str, KernelProfile]:
    """Who lends a profile what it lacks of ``needed``, collectives and norms included, by kernel kind."""
    found: dict[str, KernelProfile] = {}
    of_models = (kinds for kinds in (LINEAR_KINDS, LATENT_PROMPTS, LATENT_DECODES, EXPERT_KINDS) if needed >= kinds)
    for kinds in (COLLECTIVES, ELEMENTWISE, *of_models):
        fallback = fallback_profile(kinds, profile, accelerator, shipped, engine)
        if fallback is not None:
            found |= dict.fromkeys(kinds, fallback)
    return found


def _multiplies(profile: KernelProfile, weights: str) -> bool:
    """Whether a profile has GEMMs, and experts if any, in a weight format."""
    dtype = table_dtype(weights)
    if dtype is None:
        return False
    experts = profile.experts is None or any(name in profile.expert_dtypes for name in expert_dtypes(dtype))
    others = weight_format(weights).of == EXPERTS or (profile.gemms is not None and dtype in profile.gemms.dtypes)
    return experts and others


def _rank(name: str, order: Sequence[str]) -> tuple[int, tuple[int, ...]]:
    """The greater, the better: whose kernels come first in the order, and of these the newest."""
    of, _, version = name.partition("-")
    return -(order.index(of) if of in order else len(order)), _version(version)


def _version(name: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", name))
