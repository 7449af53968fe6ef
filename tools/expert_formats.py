"""What experts of few bits take beside those in bf16: a part of kernel-fits.md."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from simcore.cost.assumptions import ROUTING
from simcore.cost.calibrated import KernelProfile

_EXPERT_TOKENS = (16, 128, 1024, 8192)
_SPLITS = (1, 2, 4, 8)


def expert_formats(profiles: list[KernelProfile]) -> Iterator[str]:
    """What experts of other formats take beside those of bf16: a kernel that is no faster shows in runs too."""
    head = " | ".join(f"{tokens:,} tokens" for tokens in _EXPERT_TOKENS)
    yield f"| accelerator | profile | format | shapes | {head} |"
    yield f"|---|---|---|---:|{'---:|' * len(_EXPERT_TOKENS)}"
    slower = []
    for profile in profiles:
        shapes = () if profile.experts is None else profile.experts.measured.get(("bf16", ROUTING), ())
        for dtype in profile.expert_dtypes:
            measured, nearest = [], []
            for shape, split in product(shapes, _SPLITS):
                ours, wide = (profile.moe(name, *shape, split, 1, ROUTING) for name in (dtype, "bf16"))
                if dtype != "bf16" and ours is not None and wide is not None and wide.shape_inside:
                    ratios = [ours.seconds(tokens) / wide.seconds(tokens) for tokens in _EXPERT_TOKENS]
                    (measured if ours.shape_inside else nearest).append(ratios)
            if measured or nearest:
                medians = np.median(measured or nearest, axis=0)
                shown = " | ".join(f"{median:.2f}" for median in medians)
                name = f"{profile.engine} {profile.version}"
                if (medians > 1).all():
                    slower.append(f"{dtype} of {name} on {profile.accelerator}")
                yield f"| {profile.accelerator} | {name} | {dtype} | {len(measured) or ''} | {shown} |"
    if slower:
        yield ""
        yield f"Slower at each of these numbers of tokens: {', '.join(slower)}."
