"""From what was measured to fits of a profile: samples by kernel kind, and their surface at every candidate.

Points that are chosen one by one make no grid. A Gaussian process of each group of kernels says what they come to at
the shapes of all candidates that lie between; the fit of the kind makes a table of that.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrate.fit.fitted import Fitted
from calibrate.fit.held_out import EVERY, FITS, CheckedFit, quantiles, undisturbed
from calibrate.measuring.device import KernelPoint
from calibrate.measuring.repetition import Measured
from calibrate.measuring.replay import points_of
from calibrate.measuring.surrogate import Group, Peaks, Surrogate, group_of
from calibrate.profile_writer import FittedKind, Origin
from calibrate.samples import SHAPE_COLUMNS, TEXT_COLUMNS, SampleTable

_FEWEST = 3
"""Samples of a group of kernels, below which nothing is told of them."""


@dataclass(frozen=True, slots=True)
class Made:
    """Who made samples: the accelerator, the engine and its version, and of what origin a profile says they are."""

    accelerator: str
    engine: str
    version: str
    origin: Origin


def sample_tables(measured: Sequence[Measured], made: Made, file: str) -> dict[str, SampleTable]:
    """Samples by kernel kind, in the order in which they were measured."""
    points: dict[str, list[KernelPoint]] = {}
    seconds: dict[str, list[float]] = {}
    for one in measured:
        for sample in one.samples:
            points.setdefault(sample.point.kind, []).append(sample.point)
            seconds.setdefault(sample.point.kind, []).append(sample.latency_s)
    return {kind: table_of(points[kind], np.array(seconds[kind]), made, file) for kind in sorted(points)}


def table_of(points: Sequence[KernelPoint], latency_s: NDArray[np.float64], made: Made, file: str) -> SampleTable:
    """Points of one kind with their seconds as a table. Raises ``FileError`` for what no measurement can be."""
    kind = points[0].kind
    columns = {
        name: np.array([point.shape[place] for point in points], dtype=str if name in TEXT_COLUMNS else np.int64)
        for place, name in enumerate(SHAPE_COLUMNS[kind])
    }
    lines = np.arange(1, len(points) + 1)
    return SampleTable(kind, made.accelerator, made.engine, made.version, columns, latency_s, file, lines).checked()


def surface(samples: SampleTable, points: Collection[KernelPoint], peaks: Peaks | None) -> SampleTable | None:
    """What samples say of all ``points`` of their kind, and of their own; None where no group has enough of them."""
    surrogates: dict[Group, Surrogate] = {}
    own = points_of(samples)
    for point, latency_s in zip(own, samples.latency_s.tolist(), strict=True):
        surrogates.setdefault(group_of(point), Surrogate(peaks)).add(point, latency_s)
    known = {group: surrogate for group, surrogate in surrogates.items() if len(surrogate) >= _FEWEST}
    wanted: dict[Group, dict[KernelPoint, None]] = {group: {} for group in known}
    for point in (*own, *points):
        if point.kind == samples.kind and (group := group_of(point)) in wanted:
            wanted[group][point] = None
    found, seconds = [], []
    for group, places in wanted.items():
        logs, _ = known[group].predict(list(places))
        found += list(places)
        seconds.append(np.exp(logs))
    if not found:
        return None
    made = Made(samples.accelerator, samples.engine, samples.version, Origin("", "", ""))
    return table_of(found, np.concatenate(seconds), made, samples.file)


def fit_surface(samples: SampleTable, points: Collection[KernelPoint], peaks: Peaks | None) -> Fitted | None:
    """A table of the surface; None where there are too few samples for one."""
    found = surface(samples, points, peaks)
    return None if found is None else FITS[samples.kind].fit(found)


def checked_fit(samples: SampleTable, points: Collection[KernelPoint], peaks: Peaks | None) -> CheckedFit | None:
    """The same with its errors: each fifth sample is left out in turn, and priced by a fit to the others."""
    once = undisturbed(samples)
    kind_fit, place = FITS[samples.kind], np.arange(len(once))
    off = np.full(len(once), np.nan)
    for turn in range(EVERY):
        held = place % EVERY == turn
        fitted = fit_surface(once.select(~held), points, peaks) if (~held).any() else None
        if fitted is not None and held.any():
            off[held] = np.log(kind_fit.predict(fitted, once.select(held)) / once.latency_s[held])
    fitted = fit_surface(once, points, peaks)
    priced = ~np.isnan(off)
    if fitted is None or not priced.any():
        return None
    errors = {"all": quantiles(off[priced])}
    if kind_fit.groups is not None:
        groups = once.columns[kind_fit.groups]
        own = {str(group): priced & (groups == group) for group in np.unique(groups)}
        errors |= {group: quantiles(off[rows] if rows.any() else off[priced]) for group, rows in own.items()}
    return CheckedFit(samples, fitted, errors, {})


def fitted_kinds(
    tables: dict[str, SampleTable], points: Collection[KernelPoint], made: Made, peaks: Peaks | None
) -> tuple[dict[str, FittedKind], list[str]]:
    """A checked fit of each kind that has enough samples, and a sentence for each that has not."""
    found, told = {}, []
    for kind, samples in tables.items():
        if kind not in FITS:
            continue
        checked = checked_fit(samples, points, peaks)
        if checked is None:
            told.append(f"{len(samples)} samples of {kind} are too few for a fit.")
        else:
            found[kind] = FittedKind(checked, made.origin, [f"{made.engine} {made.version}"])
    return found, told


def launched_apart(kinds: dict[str, FittedKind]) -> dict[str, FittedKind]:
    """The same, of an engine that launches the prompt chunks of a step one by one."""
    kind = "context_attention"
    return {name: replace(fit, launched_apart=True) if name == kind else fit for name, fit in kinds.items()}
