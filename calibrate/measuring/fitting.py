"""From what was measured to a profile: samples by kernel kind, fits with their held-out errors, and the host."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.fit.held_out import FITS, fit_and_check
from calibrate.measuring.repetition import Measured
from calibrate.profile_writer import FittedKind, Origin
from calibrate.samples import SHAPE_COLUMNS, TEXT_COLUMNS, SampleTable
from simcore.core.errors import FileError


@dataclass(frozen=True, slots=True)
class Made:
    """Who made samples: the accelerator, the engine and its version, and of what origin a profile says they are."""

    accelerator: str
    engine: str
    version: str
    origin: Origin


def sample_tables(measured: Sequence[Measured], made: Made, file: str) -> dict[str, SampleTable]:
    """Samples by kernel kind, in the order in which they were measured."""
    rows: dict[str, list[tuple[tuple[str | int, ...], float]]] = {}
    for one in measured:
        for sample in one.samples:
            rows.setdefault(sample.point.kind, []).append((sample.point.shape, sample.latency_s))
    tables = {}
    for kind, found in sorted(rows.items()):
        columns = {
            name: np.array([shape[place] for shape, _ in found], dtype=str if name in TEXT_COLUMNS else np.int64)
            for place, name in enumerate(SHAPE_COLUMNS[kind])
        }
        latency_s = np.array([seconds for _, seconds in found])
        lines = np.arange(1, len(found) + 1)
        tables[kind] = SampleTable(
            kind, made.accelerator, made.engine, made.version, columns, latency_s, file, lines
        ).checked()
    return tables


def fitted_kinds(tables: dict[str, SampleTable], made: Made) -> tuple[dict[str, FittedKind], dict[str, str]]:
    """A checked fit of each kind that has enough samples, and why the others have none."""
    found, left_out = {}, {}
    for kind, samples in tables.items():
        if kind not in FITS:
            continue
        try:
            found[kind] = FittedKind(fit_and_check(samples), made.origin, [f"{made.engine} {made.version}"])
        except FileError as error:
            left_out[kind] = str(error)
    return found, left_out
