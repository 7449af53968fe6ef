"""Folders of one measured run with every request.

``meta.json`` states the engine's arguments, ``config.json`` the hardware; a line of ``requests.jsonl`` is a request
with its lengths, its arrival by the wall clock, and when it was queued, first scheduled, and got its first and its last
token, by another clock. A row of ``timeseries.csv`` is a second of the run.
"""

from dataclasses import dataclass
from datetime import datetime
from math import nan
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from simcore.core.bounds import LONGEST_S, MOST_COUNT, Figure
from simcore.core.errors import FileError, InputError, shortened
from simcore.core.files import json_problem, parse_json, read_json
from simcore.core.validation import explain
from simcore.workload.traces.csv_file import column_names, rows
from simcore.workload.traces.text import opened

Float64Array = NDArray[np.float64]

META, CONFIG, REQUESTS, SERIES = "meta.json", "config.json", "requests.jsonl", "timeseries.csv"
_SERIES_COLUMNS = ("t", "running", "waiting", "kv_cache_pct")
_Count = Annotated[int, Field(ge=1, le=MOST_COUNT)]
_Time = Annotated[float, Field(ge=0, le=LONGEST_S)]
_Model = TypeVar("_Model", bound=BaseModel)


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class EngineArguments(_Part):
    """How the engine was started; what is missing is the engine's default."""

    tensor_parallel_size: _Count = 1
    data_parallel_size: _Count = 1
    enable_expert_parallel: bool = False
    max_num_seqs: _Count | None = None
    max_num_batched_tokens: _Count | None = None
    max_model_len: _Count | None = None
    dtype: str = "auto"
    kv_cache_dtype: str = "auto"


class KVCache(_Part):
    """KV memory as the engine counted it."""

    num_gpu_blocks: _Count | None = None
    block_size: _Count = 16
    gpu_memory_utilization: Annotated[float, Field(ge=0.001, le=1)] = 0.9
    enable_prefix_caching: bool = True


class Meta(_Part):
    """``meta.json``."""

    model: str
    vllm_version: str = "unstated"
    engine_kwargs: EngineArguments = EngineArguments()
    kv_cache: KVCache = KVCache()
    started_at: datetime | None = None


class _Instance(_Part):
    hardware: str


class _Node(_Part):
    instances: Annotated[list[_Instance], Field(min_length=1)]


class _Config(_Part):
    link_bw: Figure | None = None
    nodes: Annotated[list[_Node], Field(min_length=1)]


class _Line(_Part):
    input_toks: _Count
    output_toks: _Count
    arrival_time: _Time
    queued_ts: _Time
    scheduled_ts: _Time
    first_token_ts: _Time
    last_token_ts: _Time


@dataclass(frozen=True, slots=True)
class MeasuredSeries:
    """The run once a second, ``time_s`` after its first arrival; ``kv_used_share`` is None if it was not recorded."""

    time_s: Float64Array
    running: Float64Array
    waiting: Float64Array
    kv_used_share: Float64Array | None


@dataclass(frozen=True, slots=True)
class RequestRun:
    """One run. Requests are in order of arrival; times are seconds since the first of them arrived.

    Arrivals are by one clock and all else by another; the two are set against each other so that the request queued
    soonest after its arrival was queued at once. Every latency counts from the arrival. ``link_bytes_per_s`` is the
    rate of the links between accelerators, as the run's configuration describes it.
    """

    folder: Path
    meta: Meta
    hardware: str
    arrival_s: Float64Array
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    scheduled_s: Float64Array
    first_token_s: Float64Array
    last_token_s: Float64Array
    series: MeasuredSeries
    link_bytes_per_s: float | None = None

    @property
    def ttft_s(self) -> Float64Array:
        """First token - arrival."""
        return self.first_token_s - self.arrival_s

    @property
    def tpot_s(self) -> Float64Array:
        """(Last token - first token) / (output tokens - 1); NaN for a single token."""
        gaps = np.where(self.output_tokens > 1, self.output_tokens - 1, np.nan)
        per_token: Float64Array = (self.last_token_s - self.first_token_s) / gaps
        return per_token

    @property
    def e2e_s(self) -> Float64Array:
        """Last token - arrival."""
        return self.last_token_s - self.arrival_s

    @property
    def queue_s(self) -> Float64Array:
        """First scheduled - arrival."""
        return self.scheduled_s - self.arrival_s


def read_request_run(folder: Path) -> RequestRun:
    """The run in a folder; raises ``FileError`` or ``InputError``, naming file and line, for what cannot be read."""
    meta = _read_json(folder / META, Meta)
    config = _read_json(folder / CONFIG, _Config)
    hardware = {instance.hardware for node in config.nodes for instance in node.instances}
    if len(hardware) > 1:
        raise FileError(folder / CONFIG, f"names {' and '.join(sorted(hardware))}, expected one kind of hardware")
    lines = _read_requests(folder / REQUESTS)
    lines.sort(key=lambda line: line.arrival_time)
    arrival = np.array([line.arrival_time for line in lines])
    offset = min(line.queued_ts - line.arrival_time for line in lines)
    origin = float(arrival[0])
    clock = {
        name: np.array([getattr(line, name) for line in lines]) - offset - origin
        for name in ("scheduled_ts", "first_token_ts", "last_token_ts")
    }
    started_s = 0.0 if meta.started_at is None else _timestamp_s(folder / META, meta.started_at) - origin
    return RequestRun(
        folder,
        meta,
        hardware.pop(),
        arrival - origin,
        np.array([line.input_toks for line in lines], dtype=np.int64),
        np.array([line.output_toks for line in lines], dtype=np.int64),
        clock["scheduled_ts"],
        clock["first_token_ts"],
        clock["last_token_ts"],
        _read_series(folder / SERIES, started_s),
        None if config.link_bw is None else config.link_bw * 1e9,
    )


def _timestamp_s(path: Path, moment: datetime) -> float:
    try:
        return moment.timestamp()
    except (ValueError, OverflowError, OSError):  # beyond what a time zone can be taken off of
        raise InputError(f"{path}: started_at", str(moment), "a moment of this age") from None


def _read_json(path: Path, model: type[_Model]) -> _Model:
    try:
        return model.model_validate(read_json(path))
    except ValidationError as error:
        raise explain(error, model, f"{path}: ") from error


def _read_requests(path: Path) -> list[_Line]:
    lines = []
    with opened(path) as text:
        for number, line in enumerate(text, start=1):
            if line.strip():
                lines.append(_request(path, number, line))
    if not lines:
        raise FileError(path, "is empty, expected a line of JSON per request")
    return lines


def _request(path: Path, number: int, line: str) -> _Line:
    try:
        found = _Line.model_validate(parse_json(line))
    except ValidationError as error:  # a ValueError too
        raise FileError(path, str(explain(error, _Line)).removesuffix("."), number) from error
    except (ValueError, RecursionError) as error:
        raise FileError(path, f"is not valid JSON ({json_problem(error)})", number) from error
    if not found.queued_ts <= found.scheduled_ts <= found.first_token_ts <= found.last_token_ts:
        order = "queued_ts, scheduled_ts, first_token_ts and last_token_ts"
        raise FileError(path, f"has {order} out of order", number)
    if found.queued_ts == found.last_token_ts:
        raise FileError(path, "has no time between queued_ts and last_token_ts, expected what the request took", number)
    return found


def _read_series(path: Path, started_s: float) -> MeasuredSeries:
    missing = [name for name in _SERIES_COLUMNS if name not in column_names(path)]
    if missing:
        raise FileError(path, f"has no column {missing[0]!r}, expected {', '.join(_SERIES_COLUMNS)}")
    table = np.array([_numbers(path, line, values) for line, values in rows(path, _SERIES_COLUMNS)], dtype=np.float64)
    if not len(table):
        raise FileError(path, "has no row, expected one per second")
    time, running, waiting, used_percent = table.T
    recorded = bool(used_percent.any())
    return MeasuredSeries(time + started_s, running, waiting, used_percent / 100 if recorded else None)


def _numbers(path: Path, line: int, values: list[Any]) -> list[float]:
    numbers = []
    for name, value in zip(_SERIES_COLUMNS, values, strict=True):
        try:
            number = float(value)
        except ValueError:
            number = nan
        if not 0 <= number <= LONGEST_S:
            raise FileError(path, f"{name} is {shortened(str(value))!r}, expected a number of at least 0", line)
        numbers.append(number)
    return numbers
