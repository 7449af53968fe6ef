"""Writes what was fitted as a profile that ``simcore.cost.calibrated`` reads: ``profile.yaml`` and a CSV per kind."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from calibrate.fit.held_out import CheckedFit
from calibrate.samples import TEXT_COLUMNS, SampleTable
from simcore.core.errors import ServetwinError
from simcore.core.outputs import FolderKind, check_folder, replace_folder
from simcore.cost.calibrated.document import PROFILE_FILE, MeasuredHost, Repeat, read_document
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.calibrated.profile import KEYS
from simcore.cost.calibrated.table import KernelTable


@dataclass(frozen=True, slots=True)
class Origin:
    """Where samples come from: the source with its commit or release, its licence, and when it was read."""

    source: str
    licence: str
    date: str


@dataclass(frozen=True, slots=True)
class FittedKind:
    """A kernel kind of a profile: its fit, where the samples come from, what ran them, and which were repeats.

    ``launched_apart``: prompt chunks of a step are launched one by one.
    """

    checked: CheckedFit
    origin: Origin
    versions: list[str]
    repeats: Sequence[Repeat] = ()
    launched_apart: bool = False


def _is_document(path: Path) -> bool:
    try:
        read_document(path.parent, KEYS)
    except ServetwinError:
        return False
    return True


def _is_table(path: Path) -> bool:
    with path.open(encoding="utf-8") as file:
        return file.readline().startswith(",".join(KEYS[path.stem]) + ",")


PROFILE_FOLDER = FolderKind(
    "a profile", (PROFILE_FILE,), {PROFILE_FILE: _is_document} | {f"{kind}.csv": _is_table for kind in KEYS}
)


def check_destination(folder: Path) -> None:
    """Raise ``FileError`` unless ``folder`` is missing, empty, or holds a profile and nothing else."""
    check_folder(folder, PROFILE_FOLDER)


def write_profile(
    folder: Path,
    accelerator: str,
    engine: str,
    version: str,
    kinds: dict[str, FittedKind],
    machine: Mapping[str, str] | None = None,
    host: MeasuredHost | None = None,
) -> None:
    """Write a profile, whole or not at all.

    ``machine`` says what was measured on, ``host`` what the engine's host adds to steps. A profile that was there is
    replaced. Raises ``FileError`` as ``check_destination`` does, and if it cannot be done.
    """
    head: dict[str, Any] = {"accelerator": accelerator, "engine": engine, "version": version}
    if machine:
        head["machine"] = dict(machine)
    if host is not None:
        head["host"] = host.model_dump()
    replace_folder(folder, PROFILE_FOLDER, lambda new: _write_files(new, head, kinds))


def _write_files(folder: Path, head: dict[str, Any], kinds: dict[str, FittedKind]) -> None:
    tables = {}
    for kind, fitted in kinds.items():
        _write_table(fitted.checked.fitted.table, folder / f"{kind}.csv")
        tables[kind] = _description(fitted)
    document = {**head, "tables": tables}
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
        **({"launched_apart": True} if kind.launched_apart else {}),
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
