"""Results as files: raw samples for calibration, and a summary that docs are made from."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.kernels.machine import Machine
from benchmarks.kernels.timing import Times
from calibrate.samples import SHAPE_COLUMNS
from kernels.case import Case

ENGINE = "servetwin"


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured of one case, and the clock of the multiprocessors meanwhile, none where it is not known."""

    case: Case
    times: Times
    clock_mhz: int | None

    @property
    def bytes_per_s(self) -> float:
        """What the kernel had to move, over the median time."""
        return self.case.bytes_moved / self.times.median_s

    @property
    def operations_per_s(self) -> float:
        """What the kernel had to compute, over the median time."""
        return self.case.operations / self.times.median_s


@dataclass(frozen=True, slots=True)
class Missing:
    """A case that was not timed, and why."""

    case: Case
    reason: str


def write_summary(
    machine: Machine, results: Sequence[Result], missing: Sequence[Missing], ratios: Sequence[Any], path: Path
) -> None:
    """Write all results with the machine they were measured on, what is missing and the ratios, as JSON; whole."""
    rows = [{**_told(result.case), **asdict(result.times), "clock_mhz": result.clock_mhz} for result in results]
    absent = [{**_told(each.case), "reason": each.reason} for each in missing]
    lists = {"results": rows, "missing": absent, "ratios": [asdict(each) for each in ratios]}
    text = f'{{"machine": {json.dumps(machine.as_json())}'
    for name, entries in lists.items():
        text += f',\n"{name}": [\n' + ",\n".join("  " + json.dumps(entry) for entry in entries) + "\n]"
    scratch = path.with_name(path.name + ".part")
    scratch.write_text(text + "}\n", encoding="utf-8")
    scratch.replace(path)


def _told(case: Case) -> dict[str, Any]:
    return {
        "kernel": case.kernel,
        "form": case.form,
        "dtype": case.dtype,
        "shape": dict(case.shape),
        "bytes": case.bytes_moved,
        "operations": case.operations,
    }


def write_samples(accelerator: str, version: str, results: Sequence[Result], folder: Path) -> list[Path]:
    """Write one Parquet file per kernel kind of calibration, in the form of docs/guides/calibrate.md; their paths.

    Beside what a fit reads stand kernel, form and data type, P10, P90 and the number of samples, and the clock.
    """
    by_kind: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        if result.case.kind is not None:
            by_kind[result.case.kind].append(result)
    paths = []
    for kind, chosen in sorted(by_kind.items()):
        rows = []
        for result in chosen:
            sample = result.case.sample
            if sample is None or set(sample) != set(SHAPE_COLUMNS[kind]):
                raise ValueError(f"{result.case} is of kind {kind}, expected a sample with {SHAPE_COLUMNS[kind]}")
            rows.append(
                {
                    "kind": kind,
                    "accelerator": accelerator,
                    "engine": ENGINE,
                    "version": version,
                    "kernel": result.case.kernel,
                    "form": result.case.form,
                    "dtype": result.case.dtype,
                    **sample,  # whose dtype, if it has one, is that of weights
                    "latency_s": result.times.median_s,
                    "p10_s": result.times.p10_s,
                    "p90_s": result.times.p90_s,
                    "repeats": result.times.repeats,
                    "clock_mhz": result.clock_mhz,
                }
            )
        path = folder / f"{kind}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
        paths.append(path)
    return paths
