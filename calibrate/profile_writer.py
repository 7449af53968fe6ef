"""Writes what was fitted as a profile that ``simcore.cost.calibrated`` reads: ``profile.yaml`` and a CSV per kind."""

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

from calibrate.fit.held_out import CheckedFit
from calibrate.samples import SHAPE_COLUMNS, TEXT_COLUMNS, SampleTable
from simcore.core.errors import FileError
from simcore.core.files import writing
from simcore.cost.calibrated.document import PROFILE_FILE, Repeat
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.calibrated.table import KernelTable
from simcore.output.run_folder import move_into_place


@dataclass(frozen=True, slots=True)
class Origin:
    """Where samples come from: the source with its commit or release, its licence, and when it was read."""

    source: str
    licence: str
    date: str


@dataclass(frozen=True, slots=True)
class FittedKind:
    """A kernel kind of a profile: its fit, where the samples come from, what ran them, and which were repeats."""

    checked: CheckedFit
    origin: Origin
    versions: list[str]
    repeats: Sequence[Repeat] = ()


def check_destination(folder: Path) -> None:
    """Raise ``FileError`` unless ``folder`` is missing, empty, or holds a profile and nothing else."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileError(folder, "is no folder, so no profile can be written there")
    found = sorted(entry.name for entry in folder.iterdir())
    others = [name for name in found if name != PROFILE_FILE and name.removesuffix(".csv") not in SHAPE_COLUMNS]
    if others:
        raise FileError(folder, f"holds {others[0]!r}, no part of a profile, which writing one there would delete")
    if found and PROFILE_FILE not in found:
        raise FileError(
            folder, f"holds {found[0]!r} but no {PROFILE_FILE}, and writing a profile there would delete it"
        )


def write_profile(folder: Path, accelerator: str, engine: str, version: str, kinds: dict[str, FittedKind]) -> None:
    """Write a profile, whole or not at all.

    A profile that was there is replaced. Raises ``FileError`` as ``check_destination`` does, and if it cannot be done.
    """
    check_destination(folder)
    place = Path(os.path.realpath(folder))
    with writing(folder):
        place.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".servetwin-", dir=place.parent) as beside:
            new = Path(beside) / "new"
            new.mkdir()
            _write_files(new, accelerator, engine, version, kinds)
            move_into_place(new, place, Path(beside) / "old")


def _write_files(folder: Path, accelerator: str, engine: str, version: str, kinds: dict[str, FittedKind]) -> None:
    tables = {}
    for kind, fitted in kinds.items():
        _write_table(fitted.checked.fitted.table, folder / f"{kind}.csv")
        tables[kind] = _description(fitted)
    document = {"accelerator": accelerator, "engine": engine, "version": version, "tables": tables}
    text = yaml.safe_dump(document, sort_keys=False, width=120, allow_unicode=True)
    (folder / PROFILE_FILE).write_text(text, encoding="utf-8")


def _description(kind: FittedKind) -> dict[str, Any]:
    checked, origin = kind.checked, kind.origin
    rates = {
        dtype: {
            "floor_s": _rounded(rate.floor_s),
            "flops_per_s": _rounded(rate.flops_per_s),
            "bytes_per_s": _rounded(rate.bytes_per_s),
        }
        for dtype, rate in checked.fitted.rates.items()
    }
    repeats = {"repeats": [repeat.model_dump() for repeat in kind.repeats]} if kind.repeats else {}
    return {
        "source": origin.source,
        "licence": origin.licence,
        "date": origin.date,
        "versions": kind.versions,
        "samples": len(checked.samples),
        "ranges": _ranges(checked.samples),
        "rates": rates,
        "held_out": {name: _errors(errors) for name, errors in checked.errors.items()},
        "noise": {
            name: {"median": round(noise.median, 4), "p90": round(noise.p90, 4)}
            for name, noise in checked.noise.items()
        },
        **repeats,
    }


def _ranges(samples: SampleTable) -> dict[str, list[int]]:
    return {
        name: [int(values.min()), int(values.max())]
        for name, values in samples.columns.items()
        if name not in TEXT_COLUMNS
    }


def _errors(errors: ErrorQuantiles) -> dict[str, Any]:
    return {
        "points": errors.points,
        "median": round(errors.median, 4),
        "p90": round(errors.p90, 4),
        "bias": round(errors.bias, 4),
        "quantiles": [round(value, 4) for value in errors.quantiles],
        **{name: round(share, 4) for name in _SHARES if (share := getattr(errors, name)) is not None},
    }


_SHARES = ("within_3_percent", "within_10_percent")


def _write_table(table: KernelTable, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*table.keys, *(f"{knot:.0f}" for knot in table.knots)])
        for row, latency_s in zip(table.rows, table.latency_s, strict=True):
            writer.writerow([*row, *("" if np.isnan(value) else _digits(value * 1e6) for value in latency_s)])


def _digits(value: float) -> str:
    """Three significant digits, without an exponent: an error of a quarter of a percent on average."""
    return f"{float(f'{value:.3g}'):g}" if value < 1e5 else f"{float(f'{value:.3g}'):.0f}"


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
