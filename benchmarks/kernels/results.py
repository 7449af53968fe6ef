"""Results as files: raw samples for calibration, and a summary that docs are made from."""

import json
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.kernels.case import Case
from benchmarks.kernels.machine import Machine
from benchmarks.kernels.timing import Times
from calibrate.samples import SHAPE_COLUMNS

ENGINE = "servetwin"


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured of one case, and the clock of the multiprocessors just after."""

    case: Case
    times: Times
    clock_mhz: int

    @property
    def bytes_per_s(self) -> float:
        """What the kernel had to move, over the median time."""
        return self.case.bytes_moved / self.times.median_s

    @property
    def operations_per_s(self) -> float:
        """What the kernel had to compute, over the median time."""
        return self.case.operations / self.times.median_s


def write_summary(machine: Machine, results: list[Result], path: Path) -> None:
    """Write all results with the machine they were measured on, as JSON."""
    rows = [
        {
            "kernel": result.case.kernel,
            "form": result.case.form,
            "dtype": result.case.dtype,
            "shape": dict(result.case.shape),
            "bytes": result.case.bytes_moved,
            "operations": result.case.operations,
            **asdict(result.times),
            "clock_mhz": result.clock_mhz,
        }
        for result in results
    ]
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    path.write_text(f'{{"machine": {json.dumps(machine.as_json())},\n"results": [\n{lines}\n]}}\n', encoding="utf-8")


def write_samples(accelerator: str, version: str, results: list[Result], folder: Path) -> None:
    """Write one Parquet file per kernel kind of calibration, in the generic form (docs/calibrate.md)."""
    by_kind: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        if result.case.kind is not None:
            by_kind[result.case.kind].append(result)
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
                    **sample,
                    "latency_s": result.times.median_s,
                    "p10_s": result.times.p10_s,
                    "p90_s": result.times.p90_s,
                    "repeats": result.times.repeats,
                    "clock_mhz": result.clock_mhz,
                    "form": result.case.form,
                }
            )
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{kind}.parquet")
