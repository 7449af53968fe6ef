"""What is known of accelerators: their datasheets side by side, and which kernels were measured on them."""

from dataclasses import dataclass
from functools import cache

from simcore.cost.calibrated import KernelProfile, available_profiles, load_profile
from simcore.hardware import Accelerator, accelerator_names, load_accelerator


@cache
def accelerators() -> tuple[Accelerator, ...]:
    """The accelerators that come with servetwin."""
    return tuple(load_accelerator(name) for name in accelerator_names())


@dataclass(frozen=True, slots=True)
class Coverage:
    """One kind of kernels in one profile: how many were measured, and the held-out errors of their fit.

    ``median`` and ``p90`` are relative; ``dtype`` is "all" where the error is of all dtypes together.
    """

    profile: str
    kind: str
    samples: int
    dtype: str
    median: float
    p90: float


def coverage(accelerator: str) -> list[Coverage]:
    """What the profiles of an accelerator hold, in order; empty for one that has none."""
    profiles = [_profile(accelerator, name) for name in available_profiles(accelerator)]
    return [
        Coverage(f"{profile.engine}-{profile.version}", kind, provenance.samples, dtype, errors.median, errors.p90)
        for profile in profiles
        for kind, provenance in profile.provenance.items()
        for dtype, errors in profile.errors[kind].items()
    ]


@cache
def _profile(accelerator: str, name: str) -> KernelProfile:
    return load_profile(accelerator, name)
