"""Sweeps that were timed, as committed: every candidate with its time, or why it has none.

A folder's ``NAME-sweeps.parquet`` has one row per candidate; ``NAME-sweeps.yaml`` beside it says where, when and how
they were timed.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kernels.launch import LaunchConfig

RESULTS = Path(__file__).resolve().parent / "results"
DIFFERS = "DIFFERS"
WITHIN = 1.05
"""How many times the fastest measured time what a kernel launches by itself may take, but for known exceptions."""
_SCHEMA = pa.schema(
    [
        ("kernel", pa.string()),
        ("form", pa.string()),
        ("dtype", pa.string()),
        ("shape", pa.string()),
        ("bytes", pa.int64()),
        ("operations", pa.int64()),
        ("config", pa.string()),
        ("median_s", pa.float64()),
        ("note", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One launch configuration at one case.

    ``bytes_moved`` and ``operations`` are what the case needs (kernels/case.py); ``config`` the arguments of
    the launch; ``median_s`` is none where it did not run, as ``note`` tells.
    """

    kernel: str
    form: str
    dtype: str
    shape: Mapping[str, int]
    bytes_moved: int
    operations: int
    config: Mapping[str, Any]
    median_s: float | None
    note: str

    @property
    def place(self) -> tuple[str, str, str, tuple[tuple[str, int], ...]]:
        """What cases are told apart by."""
        return self.kernel, self.form, self.dtype, tuple(sorted(self.shape.items()))

    @property
    def sound(self) -> bool:
        """Whether it ran, with the result of the others."""
        return self.median_s is not None and not self.note.startswith(DIFFERS)


def told_config(config: LaunchConfig) -> dict[str, Any]:
    """The arguments of a launch as candidates have them: those that are set."""
    return {name: value for name, value in config.arguments().items() if value is not None}


def write_candidates(candidates: Iterable[Candidate], path: Path) -> None:
    """Write a Parquet file; shapes and configurations are JSON in it."""
    rows = [
        {
            "kernel": each.kernel,
            "form": each.form,
            "dtype": each.dtype,
            "shape": json.dumps(dict(each.shape)),
            "bytes": each.bytes_moved,
            "operations": each.operations,
            "config": json.dumps(dict(each.config)),
            "median_s": each.median_s,
            "note": each.note,
        }
        for each in candidates
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), path, compression="zstd")


def read_candidates(path: Path) -> list[Candidate]:
    """What ``write_candidates`` wrote."""
    return [
        Candidate(
            row["kernel"],
            row["form"],
            row["dtype"],
            json.loads(row["shape"]),
            row["bytes"],
            row["operations"],
            json.loads(row["config"]),
            row["median_s"],
            row["note"],
        )
        for row in pq.read_table(path).to_pylist()
    ]


def by_case(
    candidates: Iterable[Candidate],
) -> dict[tuple[str, str, str, tuple[tuple[str, int], ...]], list[Candidate]]:
    """The sound candidates of each case, the fastest first."""
    found: dict[Any, list[Candidate]] = {}
    for each in candidates:
        if each.sound:
            found.setdefault(each.place, []).append(each)
    return {place: sorted(rows, key=lambda row: row.median_s or 0.0) for place, rows in found.items()}
