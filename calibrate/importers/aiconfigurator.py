"""Kernel tables of aiconfigurator (github.com/ai-dynamo/aiconfigurator, Apache-2.0), in its repository or its wheel.

A system's folder holds ``<family>/<engine>/<version>/<table>.parquet``, up to version 0.10 without the family and up to
0.8 as ``.txt``, which is CSV. Only the kernel tables named in ``TABLES`` are ever opened. Latencies are in
milliseconds; sizes of messages count elements.
"""

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrate.importers.aiconfigurator_columns import (
    ELEMENT_BYTES,
    TABLES,
    TEXT_COLUMNS,
    WHOLE_COLUMNS,
    Columns,
    element_bytes_of,
    names_of,
)
from calibrate.importers.columns import CsvColumns, ParquetColumns
from calibrate.samples import LATENT_MODULE, SampleTable, require_folder
from simcore.core.errors import FileError, InputError, Phrase, UnknownNameError
from simcore.cost.calibrated.linear_attention import LINEAR_ATTENTION_PHASES

ACCELERATORS = {
    "a100_sxm": "a100-sxm-80gb",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000-blackwell",
}
"""aiconfigurator's systems that servetwin has a datasheet of."""
_MESSAGE_DTYPES = ("nccl_dtype", "allreduce_dtype")
_READERS: dict[str, type[CsvColumns] | type[ParquetColumns]] = {".parquet": ParquetColumns, ".txt": CsvColumns}


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
    """The kernel tables of a system that can be imported. Raises ``UnknownNameError`` for a system that has none."""
    systems = [name for name in ACCELERATORS if (root / name).is_dir()]
    if not systems:
        raise InputError("--root", str(root), f"a folder per system, such as {', '.join(ACCELERATORS)}")
    if system not in systems:
        raise UnknownNameError("--system", system, systems)
    files = (file for layout in ("*/*/*/*", "*/*/*") for file in (root / system).glob(layout))
    return sorted(file for file in files if file.stem in TABLES and file.suffix in _READERS)


def read_table(file: Path, system: str) -> SampleTable:
    """The samples of one kernel table of a system. Raises ``FileError``, naming file and row."""
    if file.stem not in TABLES or file.suffix not in _READERS:
        raise FileError(file, f"not a kernel table; expected one of {', '.join(sorted(TABLES))}")
    kind, read = TABLES[file.stem]
    table = _READERS[file.suffix](file)
    for name in _MESSAGE_DTYPES:
        if name in table.names:
            known = np.isin(names_of(table.text(name)), list(ELEMENT_BYTES))
            table.refuse(~known, name, f"one of {', '.join(ELEMENT_BYTES)}")
    raw: Columns = {name: table.whole(name) for name in WHOLE_COLUMNS if name in table.names}
    raw |= {name: table.text(name) for name in TEXT_COLUMNS if name in table.names}
    try:
        columns = read(raw)
    except KeyError as error:
        raise FileError(file, f"no column {error.args[0]}; there are {', '.join(table.names)}") from None
    latency_s = table.numbers("latency") * 1e-3
    engine, version = file.parts[-3], file.parts[-2]
    samples = SampleTable(kind, ACCELERATORS[system], engine, version, columns, latency_s, str(file), table.lines)
    samples = samples.checked()
    if kind == "linear_attention":
        return _one_after_the_other(samples, raw)
    if kind == LATENT_MODULE:
        return samples.select(_as_deepseek_runs(raw))
    if kind == "collective":
        return _of_graphs_in_16_bits(samples, raw)
    return _fastest(*_in_cache_dtype(samples, raw))


def read_system(
    root: Path, system: str, engine: str | None = None, version: str | None = None
) -> Iterator[SampleTable]:
    """The samples of all kernel tables of a system, or of those that one engine (version) ran.

    Raises ``UnknownNameError`` for an engine or a version that the system has no tables of.
    """
    files = table_files(root, system)
    if not files:
        raise InputError("--root", str(root / system), "a folder that holds kernel tables, such as gemm_perf.parquet")
    for option, place, wanted in (("--engine", -3, engine), ("--version", -2, version)):
        if wanted is not None:
            known = sorted({file.parts[place] for file in files})
            files = [file for file in files if file.parts[place] == wanted]
            if not files:
                raise UnknownNameError(option, wanted, known)
    for file in files:
        yield read_table(file, system)


_LINEAR_PARTS = ("conv1d", "delta_rule")
"""What the kernels of a gated delta rule layer are called by: one of each runs, the first before the second."""


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
        line = int(samples.lines[index])
        if phase not in LINEAR_ATTENTION_PHASES:
            expected = f"one of {', '.join(LINEAR_ATTENTION_PHASES)}"
            raise FileError(samples.file, f"phase is {str(phase)!r}, expected {expected}", line)
        part = next((place for place, name in enumerate(_LINEAR_PARTS) if name in str(kernel)), None)
        if part is None:
            expected = f"one whose name holds {' or '.join(_LINEAR_PARTS)}"
            raise FileError(samples.file, f"kernel_source is {kernel!r}, expected {expected}", line)
        parts.setdefault((model, phase, *shape), ({}, {}))[part][index] = float(samples.latency_s[index])
    both = {min(first): min(first.values()) + min(then.values()) for first, then in parts.values() if first and then}
    kept = np.isin(np.arange(len(samples)), list(both))
    return replace(samples.select(kept), latency_s=np.array([both[index] for index in sorted(both)]))


def _in_cache_dtype(samples: SampleTable, raw: Columns) -> tuple[SampleTable, Columns]:
    """Attention computed in the KV cache's dtype alone, where that was measured for a shape: another kernel otherwise.

    With a cache in fp8 some tables hold attention in bf16 as well, which takes up to twice as long or half as long.
    """
    if "attn_dtype" not in raw or "kv_cache_dtype" not in raw:
        return samples, raw
    kept = _preferred(samples, raw["attn_dtype"] == raw["kv_cache_dtype"])
    return samples.select(kept), {name: values[kept] for name, values in raw.items()}


_SUMS = ("all_reduce", "reduce_scatter")


def _as_deepseek_runs(raw: Columns) -> NDArray[np.bool_]:
    """Modules of DeepSeek-V3 over no prefix, with queries in 16 bits, as engines have them unless asked not to."""
    kept = raw["mla_dtype"] == "bfloat16"
    for name, expected in (("model", "deepseek-ai/DeepSeek-V3"), ("step", 0)):
        if name in raw:
            kept &= raw[name] == expected
    return np.asarray(kept)


def _of_graphs_in_16_bits(samples: SampleTable, raw: Columns) -> SampleTable:
    """Collectives as engines run them: replayed in a graph, and of sums those in 16 bits where they were measured.

    A small one launched alone takes as long as Python takes to launch it. Values of 8 bits are moved as any bytes are,
    but other kernels add them: over NVLink mostly 5% slower from 1 MiB on, at some sizes a fifth faster or a third
    slower, and over PCIe as far apart.
    """
    kept = _preferred(samples, (element_bytes_of(raw) >= 2) | ~np.isin(samples.columns["operation"], _SUMS))
    alone = np.char.endswith(samples.columns["implementation"].astype(str), "_eager")
    return samples.select(kept & ~alone)


def _preferred(samples: SampleTable, preferred: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The preferred rows, and those of shapes that have none."""
    shapes = list(zip(*(values.tolist() for values in samples.columns.values()), strict=True))
    covered = {shape for shape, chosen in zip(shapes, preferred.tolist(), strict=True) if chosen}
    return np.asarray(preferred | np.array([shape not in covered for shape in shapes], dtype=bool))


def _fastest(samples: SampleTable, raw: Columns) -> SampleTable:
    """One kernel per shape: where several were measured for one, the fastest by median, as an engine would choose.

    Repeats of one kernel all stay.
    """
    if "kernel_source" not in raw or len(set(raw["kernel_source"])) == 1:
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
