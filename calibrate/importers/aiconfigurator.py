"""Kernel tables of aiconfigurator (github.com/ai-dynamo/aiconfigurator, Apache-2.0), in its repository or its wheel.

A system's folder holds ``<family>/<engine>/<version>/<table>.parquet``, up to version 0.10 without the family. Only the
kernel tables named in ``TABLES`` are ever opened. Latencies are in milliseconds; sizes of messages count elements.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from calibrate.samples import SampleTable, require_folder
from simcore.cost.calibrated.linear_attention import LINEAR_ATTENTION_PHASES
from simcore.cost.calibrated.profile import MLA_HEAD_DIM
from simcore.errors import FileError, InputError, Phrase, UnknownNameError

ACCELERATORS = {
    "a100_sxm": "a100-sxm-80gb",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000-blackwell",
}
"""aiconfigurator's systems that servetwin has a datasheet of."""
_DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "fp8_block": "fp8-block",
    "int4_wo": "int4",
    "w4a16_mxfp4": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4-mxfp8",
}
_ELEMENT_BYTES = {"fp16": 2, "bf16": 2, "int8": 1, "fp8": 1, "fp32": 4}
_MESSAGE_DTYPES = ("nccl_dtype", "allreduce_dtype")
_NUMBERS = frozenset(
    [
        "m",
        "n",
        "k",
        "num_heads",
        "num_key_value_heads",
        "head_dim",
        "window_size",
        "batch_size",
        "isl",
        "step",
        "hidden_size",
        "inter_size",
        "topk",
        "num_experts",
        "moe_tp_size",
        "moe_ep_size",
        "num_tokens",
        "num_gpus",
        "seq_len",
        "num_k_heads",
        "head_k_dim",
        "num_v_heads",
        "head_v_dim",
        "message_size",
        "latency",
    ]
)
_OPERATIONS = {"alltoall": "all_to_all"}
_IMPLEMENTATIONS = {"NCCL": "nccl", "vLLM_custom_graph": "custom_graph", "vLLM_custom_eager": "custom_eager"}
Columns = dict[str, NDArray[Any]]


def find_root(root: Path | None) -> Path:
    """The folder of systems: the one given, or that of an installed ``aiconfigurator-core``.

    Raises ``InputError`` where neither is there.
    """
    if root is not None:
        data = root / "systems" / "data"
        return data if data.is_dir() else require_folder(root, "a folder per system, such as h200_sxm")
    spec = find_spec("aiconfigurator_core")
    if spec is None or spec.origin is None:
        raise InputError(
            "--root", Phrase("not given"), "a folder of aiconfigurator tables, or an installed aiconfigurator-core"
        )
    return Path(spec.origin).parent / "systems" / "data"


def table_files(root: Path, system: str) -> list[Path]:
    """The kernel tables of a system that can be imported."""
    systems = [folder.name for folder in root.iterdir() if folder.is_dir()]
    if system not in systems:
        raise UnknownNameError("--system", system, systems)
    layouts = ("*/*/*/*.parquet", "*/*/*.parquet")
    files = (file for layout in layouts for file in (root / system).glob(layout))
    return sorted(file for file in files if file.stem in TABLES)


def read_table(file: Path) -> SampleTable:
    """The samples of one kernel table. Raises ``FileError``, naming file and row."""
    engine, version = file.parts[-3], file.parts[-2]
    system = next((name for name in file.parts[-5:-3] if name in ACCELERATORS), file.parts[-5])
    if file.stem not in TABLES:
        raise FileError(file, f"not a kernel table; expected one of {', '.join(sorted(TABLES))}")
    if system not in ACCELERATORS:
        raise UnknownNameError("--system", system, ACCELERATORS)
    kind, read = TABLES[file.stem]
    try:
        table = pq.read_table(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise FileError(file, f"cannot be read ({error})") from error
    raw = {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
    _require_readable(file, raw)
    try:
        columns = read(raw)
        latency_s = raw["latency"].astype(np.float64) * 1e-3
    except KeyError as error:
        raise FileError(file, f"no column {error.args[0]}; there are {', '.join(table.column_names)}") from None
    lines = np.arange(1, table.num_rows + 1)
    samples = SampleTable(kind, ACCELERATORS[system], engine, version, columns, latency_s, str(file), lines)
    samples = samples.checked()
    if kind == "linear_attention":
        return _one_after_the_other(samples, raw)
    return _fastest(*_in_cache_dtype(samples, raw))


def _require_readable(file: Path, raw: Columns) -> None:
    """Raise ``FileError``, naming file and row, for text where numbers belong, and for messages of unknown types."""
    for name, values in raw.items():
        if name in _MESSAGE_DTYPES:
            broken, expected = ~np.isin(_names(values), list(_ELEMENT_BYTES)), f"one of {', '.join(_ELEMENT_BYTES)}"
        elif name in _NUMBERS and values.dtype == object:
            broken, expected = np.array([isinstance(value, str | bytes) for value in values]), "a number"
        else:
            continue
        if broken.any():
            row = int(broken.argmax())
            raise FileError(file, f"{name} is {values[row]!r}, expected {expected}", row + 1)


def read_system(
    root: Path, system: str, engine: str | None = None, version: str | None = None
) -> Iterator[SampleTable]:
    """The samples of all kernel tables of a system, or of those that one engine (version) ran."""
    for file in table_files(root, system):
        if engine in (None, file.parts[-3]) and version in (None, file.parts[-2]):
            yield read_table(file)


_LINEAR_PARTS = ("conv1d", "delta_rule")
"""What the kernels of a gated delta rule layer are called by: one of each runs, the first before the second."""
_TOLD_APART = {"marlin": "mxfp4", "deepgemm": "fp8-block"}
"""Kernels of experts that engines run on demand, and the dtype whose default ones they differ much from."""


def _names(values: NDArray[Any]) -> NDArray[np.str_]:
    return np.array([_DTYPES.get(value, value) for value in values])


def _gemm(raw: Columns) -> Columns:
    return {"dtype": _names(raw["gemm_dtype"]), "tokens": raw["m"], "n": raw["n"], "k": raw["k"]}


def _attention(raw: Columns) -> Columns:
    heads = raw["num_heads"]
    window = raw.get("window_size", np.zeros(len(heads), dtype=np.int64))
    return {
        "kv_dtype": _names(raw["kv_cache_dtype"]),
        "heads": heads,
        "kv_heads": raw["num_key_value_heads"],
        "head_dim": raw["head_dim"],
        "window": window,
        "batch": raw["batch_size"],
    }


def _context(raw: Columns) -> Columns:
    return {**_attention(raw), "tokens": raw["isl"], "prefix": raw["step"] if "step" in raw else 0 * raw["isl"]}


def _generation(raw: Columns) -> Columns:
    # ``step`` tokens stand in the cache; the new one attends to itself too.
    return {**_attention(raw), "context": raw["step"] + 1}


def _latent(raw: Columns) -> Columns:
    ones = np.ones(len(raw["num_heads"]), dtype=np.int64)
    return {**raw, "num_key_value_heads": ones, "head_dim": MLA_HEAD_DIM * ones, "window_size": 0 * ones}


def _moe(raw: Columns) -> Columns:
    dtypes = _names(raw["moe_dtype"]).astype(object)
    for kernel, dtype in _TOLD_APART.items():
        of_kernel = np.array([kernel in str(name) for name in raw.get("kernel_source", np.full(len(dtypes), ""))])
        dtypes[of_kernel & (dtypes == dtype)] = f"{dtype}-{kernel}"
    return {
        "dtype": dtypes.astype(str),
        "distribution": raw["distribution"].astype(str),
        "hidden": raw["hidden_size"],
        "intermediate": raw["inter_size"],
        "experts_per_token": raw["topk"],
        "experts": raw["num_experts"],
        "tensor_parallel": raw["moe_tp_size"],
        "expert_parallel": raw["moe_ep_size"],
        "tokens": raw["num_tokens"],
    }


def _collective(raw: Columns) -> Columns:
    dtypes = _names(raw["nccl_dtype"] if "nccl_dtype" in raw else raw["allreduce_dtype"])
    sources = raw.get("kernel_source", np.full(len(dtypes), "custom"))
    operations = raw.get("op_name", np.full(len(dtypes), "all_reduce"))
    element_bytes = np.array([_ELEMENT_BYTES[dtype] for dtype in dtypes])
    return {
        "operation": np.array([_OPERATIONS.get(name, name) for name in operations]),
        "implementation": np.array([_IMPLEMENTATIONS.get(name, name.lower()) for name in sources]),
        "nodes": np.ones(len(dtypes), dtype=np.int64),
        "ranks_per_node": raw["num_gpus"],
        "bytes": raw["message_size"] * element_bytes,
    }


def _linear_attention(raw: Columns) -> Columns:
    return {
        "phase": raw["phase"].astype(str),
        "key_heads": raw["num_k_heads"],
        "value_heads": raw["num_v_heads"],
        "key_head_dim": raw["head_k_dim"],
        "value_head_dim": raw["head_v_dim"],
        "batch": raw["batch_size"],
        "tokens": raw["seq_len"],
    }


def _one_after_the_other(samples: SampleTable, raw: Columns) -> SampleTable:
    """The causal convolution and the delta rule of a shape as one sample: their sum, where both were measured.

    Models of one shape are repeats, each at the row of its convolution. Of several kernels of a part the fastest
    counts, as an engine would choose. Raises ``FileError``, naming the row, for a kernel that is neither part and for
    an unknown phase.
    """
    if "kernel_source" not in raw:
        raise FileError(samples.file, f"no column kernel_source; there are {', '.join(raw)}")
    parts: dict[tuple[Any, ...], tuple[dict[int, float], dict[int, float]]] = {}
    models = raw.get("model_name", np.full(len(samples), ""))
    rows = zip(raw["kernel_source"].tolist(), models.tolist(), *samples.columns.values(), strict=True)
    for index, (kernel, model, phase, *shape) in enumerate(rows):
        if phase not in LINEAR_ATTENTION_PHASES:
            expected = f"one of {', '.join(LINEAR_ATTENTION_PHASES)}"
            raise FileError(samples.file, f"phase is {str(phase)!r}, expected {expected}", index + 1)
        part = next((place for place, name in enumerate(_LINEAR_PARTS) if name in str(kernel)), None)
        if part is None:
            expected = f"one whose name holds {' or '.join(_LINEAR_PARTS)}"
            raise FileError(samples.file, f"kernel_source is {kernel!r}, expected {expected}", index + 1)
        parts.setdefault((model, phase, *shape), ({}, {}))[part][index] = float(samples.latency_s[index])
    both = {min(first): min(first.values()) + min(then.values()) for first, then in parts.values() if first and then}
    if parts and not both:
        raise FileError(samples.file, f"no shape of which both {' and '.join(_LINEAR_PARTS)} were measured")
    kept = np.isin(np.arange(len(samples)), list(both))
    return replace(samples.select(kept), latency_s=np.array([both[index] for index in sorted(both)]))


def _in_cache_dtype(samples: SampleTable, raw: Columns) -> tuple[SampleTable, Columns]:
    """Attention computed in the KV cache's dtype alone, where that was measured for a shape: another kernel otherwise.

    With a cache in fp8 some tables hold attention in bf16 as well, which takes up to twice as long or half as long.
    """
    if "attn_dtype" not in raw or "kv_cache_dtype" not in raw:
        return samples, raw
    own = raw["attn_dtype"] == raw["kv_cache_dtype"]
    shapes = list(zip(*(values.tolist() for values in samples.columns.values()), strict=True))
    covered = {shape for shape, chosen in zip(shapes, own.tolist(), strict=True) if chosen}
    kept = own | np.array([shape not in covered for shape in shapes])
    return samples.select(kept), {name: values[kept] for name, values in raw.items()}


def _fastest(samples: SampleTable, raw: Columns) -> SampleTable:
    """One kernel per shape: where several were measured for one, the fastest by median, as an engine would choose.

    Repeats of one kernel all stay.
    """
    if samples.kind == "collective" or "kernel_source" not in raw or len(set(raw["kernel_source"])) == 1:
        return samples
    shapes: dict[tuple[Any, ...], dict[str, list[int]]] = {}
    names = list(samples.columns)
    for index, (kernel, *shape) in enumerate(
        zip(raw["kernel_source"], *(samples.columns[name] for name in names), strict=True)
    ):
        shapes.setdefault(tuple(shape), {}).setdefault(kernel, []).append(index)
    kept = np.zeros(len(samples), dtype=bool)
    for kernels in shapes.values():
        best = min(kernels.values(), key=lambda rows: float(np.median(samples.latency_s[rows])))
        kept[best] = True
    return samples.select(kept)


TABLES: dict[str, tuple[str, Callable[[Columns], Columns]]] = {
    "gemm_perf": ("gemm", _gemm),
    "context_attention_perf": ("context_attention", _context),
    "generation_attention_perf": ("generation_attention", _generation),
    "context_mla_perf": ("mla_context", lambda raw: _context(_latent(raw))),
    "generation_mla_perf": ("mla_generation", lambda raw: _generation(_latent(raw))),
    "moe_perf": ("moe", _moe),
    "gdn_perf": ("linear_attention", _linear_attention),
    "custom_allreduce_perf": ("collective", _collective),
    "nccl_perf": ("collective", _collective),
}
"""The kernel tables, each with the kind it holds and what reads its columns."""
