"""How well fits predict what they have not seen: every fifth grid point is left out, fitted around, and priced."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrate.fit.collective import CollectiveFit
from calibrate.fit.context import ContextFit
from calibrate.fit.elementwise import ElementwiseFit
from calibrate.fit.fitted import Fitted, KindFit
from calibrate.fit.gemm import GemmFit
from calibrate.fit.generation import GenerationFit
from calibrate.fit.linear_attention import LinearAttentionFit
from calibrate.fit.moe import MoeFit
from calibrate.fit.noise import Noise, noise_of
from calibrate.samples import SHAPE_COLUMNS, SampleTable
from simcore.core.errors import FileError, UnknownNameError
from simcore.cost.calibrated.base import ELEMENT_BYTES, KV_BYTES
from simcore.cost.calibrated.elementwise import ELEMENTWISE
from simcore.cost.calibrated.errors import LEVELS, ErrorQuantiles
from simcore.cost.calibrated.linear_attention import LINEAR_ATTENTION_PHASES
from simcore.cost.collectives import OPERATIONS

FITS: dict[str, KindFit] = {
    "gemm": GemmFit(),
    "context_attention": ContextFit(),
    "generation_attention": GenerationFit(),
    "mixed_generation": GenerationFit(),
    "mla_context": ContextFit(),
    "mla_generation": GenerationFit(),
    "moe": MoeFit(),
    "collective": CollectiveFit(),
    "elementwise": ElementwiseFit(),
    "linear_attention": LinearAttentionFit(),
}
"""The fit of each kernel kind that a profile may hold."""
EVERY = 5


@dataclass(frozen=True, slots=True)
class CheckedFit:
    """A fit of all samples of a kind, with errors measured on fits of four fifths, by group and for "all".

    ``noise`` is an estimate of what measurements are off by themselves, where their grid tells.
    """

    samples: SampleTable
    fitted: Fitted
    errors: dict[str, ErrorQuantiles]
    noise: dict[str, Noise]


def fit_and_check(samples: SampleTable) -> CheckedFit:
    """Fit the samples of a kind and measure its held-out errors.

    A held-out point that no other is like (of another head dimension, say) has no price, and none of these errors.
    Raises ``FileError`` where that leaves nothing to check a fit by, ``UnknownNameError`` for an unknown data type,
    operator or phase.
    """
    _require_known_types(samples)
    kind_fit = FITS[samples.kind]
    points = undisturbed(samples)
    held = held_out(points)
    seen, unseen = points.select(~held), points.select(held)
    if not len(seen):
        raise FileError(samples.file, f"{len(samples)} samples of {samples.kind} are too few to check a fit by")
    prices = kind_fit.predict(kind_fit.fit(seen), unseen)
    priced = ~np.isnan(prices)
    if not priced.any():
        raise FileError(samples.file, f"{len(samples)} samples of {samples.kind} are too few to check a fit by")
    unseen = unseen.select(priced)
    logs = np.log(prices[priced] / unseen.latency_s)
    errors = {"all": quantiles(logs)}
    parts = {"all": points}
    if kind_fit.groups is not None:
        groups = unseen.columns[kind_fit.groups]
        errors |= {str(group): quantiles(logs[groups == group]) for group in np.unique(groups)}
        parts |= {name: points.select(points.columns[kind_fit.groups] == name) for name in errors if name != "all"}
    noise = {name: found for name, part in parts.items() if (found := noise_of(part)) is not None}
    return CheckedFit(samples, kind_fit.fit(points), errors, noise)


_KNOWN_TYPES: dict[str, Collection[str]] = {
    "kv_dtype": KV_BYTES,
    "dtype": ELEMENT_BYTES,
    "operator": ELEMENTWISE,
    "operation": OPERATIONS,
    "phase": LINEAR_ATTENTION_PHASES,
}


def unknown_types(samples: SampleTable) -> dict[tuple[str, str], NDArray[np.bool_]]:
    """The rows of each data type, operator or phase that no fit knows, by its column and name."""
    found = {}
    for column, known in _KNOWN_TYPES.items():
        for name in np.unique(samples.columns.get(column, [])):
            if name not in known:
                found[column, str(name)] = samples.columns[column] == name
    return found


def _require_known_types(samples: SampleTable) -> None:
    for column, name in unknown_types(samples):
        raise UnknownNameError(f"{samples.file}: {column}", name, _KNOWN_TYPES[column])


def held_out(samples: SampleTable) -> NDArray[np.bool_]:
    """Every fifth grid point along every axis, on diagonals of the grid; repeats of a point go together."""
    columns = [samples.columns[name] for name in SHAPE_COLUMNS[samples.kind]]
    steps = sum(np.unique(column, return_inverse=True)[1].reshape(-1) for column in columns)
    return np.asarray(steps % EVERY == EVERY // 2)


def undisturbed(samples: SampleTable) -> SampleTable:
    """Each grid point once, at the geometric mean of the faster half of its repeats, the middle one included.

    What else a machine does holds kernels up, often by a multiple, and never makes them faster.
    """
    columns = [samples.columns[name] for name in SHAPE_COLUMNS[samples.kind]]
    places = np.column_stack([np.unique(column, return_inverse=True)[1].reshape(-1) for column in columns])
    _, first, of = np.unique(places, axis=0, return_index=True, return_inverse=True)
    of = of.reshape(-1)
    order = np.lexsort((samples.latency_s, of))
    counts = np.bincount(of)
    rank = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    fast = order[2 * rank < np.repeat(counts, counts)]
    total = np.bincount(of[fast], weights=np.log(samples.latency_s[fast]))
    once = np.zeros(len(samples), dtype=bool)
    once[first] = True
    points = samples.select(once)
    return replace(points, latency_s=np.exp(total / np.bincount(of[fast]))[of[once]])


def quantiles(logs: NDArray[np.float64]) -> ErrorQuantiles:
    """Quantiles of errors that are logarithms of price over measurement; every point must have a price."""
    relative = np.abs(np.expm1(logs))
    return ErrorQuantiles(
        len(logs),
        float(np.median(relative)),
        float(np.quantile(relative, 0.9)),
        float(np.mean(logs)),
        tuple(float(value) for value in np.quantile(logs, LEVELS)),
        float(np.mean(relative <= 0.03)),
        float(np.mean(relative <= 0.10)),
    )
