"""Which kernel profile a run prices with."""

import re
from functools import lru_cache

from simcore.cost.calibrated import KernelProfile, available_profiles, load_profile
from simcore.errors import UnknownNameError
from simcore.models import MixtureOfExperts, ModelSpec

AUTO, ROOFLINE = "auto", "roofline"
_AUTO_ENGINE = "vllm-"

_load = lru_cache(maxsize=4)(load_profile)
"""Reading a profile takes longer than many a run; variants of one scenario share it."""


def needed_kinds(spec: ModelSpec, ranks: int) -> frozenset[str]:
    """The kernel kinds without which a profile is no good for a model on so many tensor-parallel ranks."""
    kinds = {"gemm", "context_attention", "generation_attention"}
    if any(isinstance(group.feed_forward, MixtureOfExperts) for group in spec.layer_groups):
        kinds.add("moe")
    if ranks > 1:
        kinds.add("collective")
    return frozenset(kinds)


def chosen_profile(choice: str, accelerator: str, kinds: frozenset[str], shipped: bool = True) -> KernelProfile | None:
    """The profile that a scenario chooses, None for the roofline.

    "auto" takes the newest vLLM profile of the accelerator that has all ``kinds``, if it is one that is ``shipped``.
    Raises ``UnknownNameError`` for a name that is neither, ``FileError`` and ``InputError`` for a broken profile.
    """
    if choice == ROOFLINE:
        return None
    known = available_profiles(accelerator) if shipped else ()
    if choice != AUTO:
        if "/" not in choice and choice not in known:
            raise UnknownNameError("pricing.profile", choice, (AUTO, ROOFLINE, *known))
        return _load(accelerator, choice)
    for name in sorted((name for name in known if name.startswith(_AUTO_ENGINE)), key=_version, reverse=True):
        profile = _load(accelerator, name)
        if kinds <= set(profile.provenance):
            return profile
    return None


def _version(name: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", name))
