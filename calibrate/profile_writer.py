"""Writes what was fitted as a profile that ``simcore.cost.calibrated`` reads: ``profile.yaml`` and a CSV per kind."""

import csv
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from calibrate.fit.held_out import CheckedFit
from calibrate.samples import TEXT_COLUMNS, SampleTable
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.calibrated.profile import PROFILE_FILE
from simcore.cost.calibrated.table import KernelTable


@dataclass(frozen=True, slots=True)
class Origin:
    """Where samples come from: the source with its commit or release, its licence, and when it was read."""

    source: str
    licence: str
    date: str


def write_profile(
    folder: Path, accelerator: str, engine: str, version: str, fits: dict[str, tuple[CheckedFit, Origin, list[str]]]
) -> None:
    """Write a profile, whole or not at all; each kind with its origin and the versions measured."""
    scratch = folder.with_name(folder.name + ".part")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    tables = {}
    for kind, (checked, origin, versions) in fits.items():
        _write_table(checked.fitted.table, scratch / f"{kind}.csv")
        tables[kind] = _description(checked, origin, versions)
    document = {"accelerator": accelerator, "engine": engine, "version": version, "tables": tables}
    text = yaml.safe_dump(document, sort_keys=False, width=120, allow_unicode=True)
    (scratch / PROFILE_FILE).write_text(text, encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    scratch.rename(folder)


def _description(checked: CheckedFit, origin: Origin, versions: list[str]) -> dict[str, Any]:
    rates = {
        dtype: {
            "floor_s": _rounded(rate.floor_s),
            "flops_per_s": _rounded(rate.flops_per_s),
            "bytes_per_s": _rounded(rate.bytes_per_s),
        }
        for dtype, rate in checked.fitted.rates.items()
    }
    return {
        "source": origin.source,
        "licence": origin.licence,
        "date": origin.date,
        "versions": versions,
        "samples": len(checked.samples),
        "ranges": _ranges(checked.samples),
        "rates": rates,
        "held_out": {name: _errors(errors) for name, errors in checked.errors.items()},
        "noise": {
            name: {"median": round(noise.median, 4), "p90": round(noise.p90, 4)}
            for name, noise in checked.noise.items()
        },
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
    }


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
