"""Latencies in result files of load generators, whose requests are workloads too."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simcore.core.errors import FileError
from simcore.workload.traces import json_file, jsonl_file
from simcore.workload.traces.formats import FORMATS
from simcore.workload.traces.layout import Layout, find_layout

_READERS = {"json": json_file, "jsonl": jsonl_file}


@dataclass(frozen=True, slots=True)
class _Columns:
    """What a format calls the time to first token, and the mean time of each token after it or the list of them."""

    ttft: str
    tpot: str
    seconds: float = 1e-3


_OF_VLLM = _Columns("ttfts", "itls", seconds=1.0)
_LATENCIES: Mapping[str, _Columns] = {
    "vllm-bench": _OF_VLLM,
    "vllm-bench-rate": _OF_VLLM,
    "guidellm": _Columns("time_to_first_token_ms", "inter_token_latency_ms"),
    "aiperf": _Columns("metrics.time_to_first_token.value", "metrics.inter_token_latency.value"),
}


def measured_latencies(path: Path, trace_format: str = "auto") -> dict[str, float]:
    """Mean, median and P99 of TTFT, TPOT and E2E in seconds, by the keys of a case; empty where a file has none.

    Requests without an output token are left out. Raises ``FileError`` for a file that cannot be read and for a time
    that is none.
    """
    layout = find_layout(path, trace_format)
    columns, reader = _LATENCIES.get(layout.format), _READERS.get(layout.kind)
    if columns is None or reader is None or columns.ttft not in reader.column_names(path):
        return {}
    ttft_s: list[float] = []
    tpot_s: list[float] = []
    e2e_s: list[float] = []
    for output_tokens, first, later in _rows(path, layout, columns):
        ttft_s.append(first)
        if later is not None:
            later_tokens = output_tokens - 1
            e2e_s.append(first + later * later_tokens)
            if later_tokens:
                tpot_s.append(later)
    figures: dict[str, float] = {}
    for name, values in (("ttft_s", ttft_s), ("tpot_s", tpot_s), ("e2e_s", e2e_s)):
        if values:
            p50, p99 = np.percentile(values, (50, 99))
            figures |= {f"{name}.mean": float(np.mean(values)), f"{name}.p50": float(p50), f"{name}.p99": float(p99)}
    return figures


def _rows(path: Path, layout: Layout, columns: _Columns) -> Iterator[tuple[int, float, float | None]]:
    """Output tokens, TTFT and the mean time of a later token, None where the file does not say."""
    reader, where = _READERS[layout.kind], FORMATS[layout.format].where
    later = [columns.tpot] if columns.tpot in reader.column_names(path) else []
    names = [layout.columns.output_tokens, columns.ttft, *later, *(name for name, _ in where)]
    for place, (output, first, *others) in reader.rows(path, names):
        if [*others[len(later) :]] != [wanted for _, wanted in where]:
            continue
        tokens = int(_number(path, place, layout.columns.output_tokens, output))
        if not tokens:
            continue
        tpot_s = None
        if later:
            gaps = others[0] if isinstance(others[0], list) else None
            total = sum(_number(path, place, columns.tpot, gap) for gap in gaps) if gaps is not None else None
            each = total / max(tokens - 1, 1) if total is not None else _number(path, place, columns.tpot, others[0])
            tpot_s = each * columns.seconds
        yield tokens, _number(path, place, columns.ttft, first) * columns.seconds, tpot_s


def _number(path: Path, place: int, column: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if isinstance(value, bool) or not 0 <= number < 1e12:
        raise FileError(path, f"row {place}: {column} is {str(value)[:60]!r}, expected a number of at least 0")
    return number
