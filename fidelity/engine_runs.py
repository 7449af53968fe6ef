"""Files of measured engine runs: one row per configuration with mean TTFT and TPOT at a given concurrency."""

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from simcore.core.bounds import MOST_COUNT, MOST_DIGITS
from simcore.core.errors import FileError, shortened
from simcore.workload.traces.csv_file import column_names, rows

_COLUMNS = (
    "id",
    "silicon_data_source",
    "backend",
    "backend_version",
    "model_path",
    "system",
    "precision",
    "mode",
    "isl",
    "osl",
    "gemm_quant_mode",
    "moe_quant_mode",
    "batch_size",
    "tp_size",
    "pp_size",
    "attention_dp_size",
    "moe_tp_size",
    "moe_ep_size",
    "silicon_ttft_ms",
    "silicon_tpot_ms",
)
_SHORTEST_MS, _LONGEST_MS = 1e-6, 1e9
_DATED_DUMP = re.compile(r"(db-dump/|source_file=)\d{4}-\d{2}-\d{2}\b")
_CONCURRENCY = re.compile(r"silicon_concurrency=([^;,]*)")
_MEASURED = re.compile(r"measured=(\d{4}-\d{2}-\d{2})")


@dataclass(frozen=True, slots=True)
class EngineRun:
    """One row.

    ``known_harness`` tells a row of a dated dump, which all come from one public harness. ``concurrency`` is None where
    the row states none. Sizes that a row leaves empty or states as 0 are 1; ``batch_size`` is per attention rank.
    Disaggregated rows have no ``batch_size`` and no sizes of their own.
    """

    name: str
    source: str
    measured_on: date | None
    engine: str
    version: str
    model: str
    system: str
    precision: str
    mode: str
    prompt_tokens: int
    output_tokens: int
    gemm_precision: str
    expert_precision: str
    batch_size: int | None
    concurrency: int | None
    tensor_parallel: int
    pipeline_parallel: int
    attention_data_parallel: int
    expert_tensor_parallel: int
    expert_parallel: int
    ttft_s: float
    tpot_s: float

    @property
    def known_harness(self) -> bool:
        """Whether the source names a dated dump of the public harness."""
        return _DATED_DUMP.match(self.source) is not None


def read_engine_runs(path: Path) -> list[EngineRun]:
    """All rows of a file; raises ``FileError``, naming file and line, for a row that cannot be read, and for no row."""
    missing = [name for name in _COLUMNS if name not in column_names(path)]
    if missing:
        raise FileError(path, f"has no column {missing[0]!r}, expected a file of measured engine runs")
    runs = [_Row(path, line, dict(zip(_COLUMNS, values, strict=True))).run() for line, values in rows(path, _COLUMNS)]
    if not runs:
        raise FileError(path, "has no rows, expected at least one measured engine run")
    return runs


@dataclass(frozen=True, slots=True)
class _Row:
    path: Path
    line: int
    values: dict[str, object]

    def run(self) -> EngineRun:
        return EngineRun(
            name=self._text("id"),
            source=self._text("silicon_data_source"),
            measured_on=self._measured_on(),
            engine=self._required("backend"),
            version=self._text("backend_version"),
            model=self._required("model_path"),
            system=self._required("system"),
            precision=self._text("precision"),
            mode=self._required("mode"),
            prompt_tokens=self._whole("isl"),
            output_tokens=self._whole("osl"),
            gemm_precision=self._text("gemm_quant_mode"),
            expert_precision=self._text("moe_quant_mode"),
            batch_size=self._whole("batch_size") if self._text("batch_size") else None,
            concurrency=self._concurrency(),
            tensor_parallel=self._size("tp_size"),
            pipeline_parallel=self._size("pp_size"),
            attention_data_parallel=self._size("attention_dp_size"),
            expert_tensor_parallel=self._size("moe_tp_size"),
            expert_parallel=self._size("moe_ep_size"),
            ttft_s=self._milliseconds("silicon_ttft_ms"),
            tpot_s=self._milliseconds("silicon_tpot_ms"),
        )

    def _measured_on(self) -> date | None:
        stated = _MEASURED.search(self._text("silicon_data_source"))
        if stated is None:
            return None
        try:
            return date.fromisoformat(stated[1])
        except ValueError:
            raise FileError(self.path, f"measured={stated[1]} names no day, expected a date", self.line) from None

    def _concurrency(self) -> int | None:
        stated = _CONCURRENCY.search(self._text("silicon_data_source"))
        if stated is None:
            return None
        text = stated[1].strip()
        if not _is_count(text, 1):
            problem = f"silicon_concurrency is {shortened(text)!r}, expected a whole number of at least 1"
            raise FileError(self.path, problem, self.line)
        return int(text)

    def _text(self, column: str) -> str:
        return str(self.values[column]).strip()

    def _required(self, column: str) -> str:
        return self._text(column) or self._refuse(column, "some text")

    def _whole(self, column: str, least: int = 1) -> int:
        """A whole number, also as a column with gaps writes it elsewhere: 8.0."""
        text = self._text(column).removesuffix(".0")
        if not _is_count(text, least):
            self._refuse(column, f"a whole number of at least {least}")
        return int(text)

    def _size(self, column: str) -> int:
        return max(1, self._whole(column, least=0)) if self._text(column) else 1

    def _milliseconds(self, column: str) -> float:
        try:
            value = float(self._text(column))
        except ValueError:
            value = 0.0
        if not _SHORTEST_MS <= value <= _LONGEST_MS:
            self._refuse(column, f"milliseconds from {_SHORTEST_MS:g} to {_LONGEST_MS:g}")
        return value / 1e3

    def _refuse(self, column: str, expected: str) -> str:
        raise FileError(self.path, f"{column} is {shortened(self._text(column))!r}, expected {expected}", self.line)


def _is_count(text: str, least: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS and least <= int(text) <= MOST_COUNT
