"""servetwin's own form of measurements: a CSV or Parquet file per kernel kind, columns by name, latency in seconds.

``kind,accelerator,engine,version``, then the kind's shape parameters (``calibrate.samples.SHAPE_COLUMNS``) and
``latency_s``. All rows of a file are of one kind, accelerator, engine and version.
"""

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from calibrate.importers.columns import CsvColumns, ParquetColumns
from calibrate.samples import SHAPE_COLUMNS, TEXT_COLUMNS, SampleTable
from simcore.core.errors import FileError, UnknownNameError
from simcore.core.files import writing
from simcore.core.outputs import begins_with, replacing

HEAD = ("kind", "accelerator", "engine", "version")


def read_samples(path: Path) -> SampleTable:
    """Read such a file. Raises ``FileError``, naming file and line."""
    file = ParquetColumns(path) if path.suffix == ".parquet" else CsvColumns(path)
    head = []
    for name in HEAD:
        values = file.text(name)
        if (values != values[0]).any():
            line = int(file.lines[int((values != values[0]).argmax())])
            raise FileError(path, f"{name} is {str(values[0])!r} in the first row but differs", line)
        head.append(str(values[0]))
    kind, accelerator, engine, version = head
    if kind not in SHAPE_COLUMNS:
        raise UnknownNameError(f"{path}: kind", kind, SHAPE_COLUMNS)
    columns = {name: file.text(name) if name in TEXT_COLUMNS else file.whole(name) for name in SHAPE_COLUMNS[kind]}
    latency_s = file.numbers("latency_s")
    return SampleTable(kind, accelerator, engine, version, columns, latency_s, str(path), file.lines).checked()


def write_parquet(samples: SampleTable, path: Path) -> None:
    """Write such a file as Parquet, whole or not at all; raises ``FileError`` if that cannot be done."""
    head = (samples.kind, samples.accelerator, samples.engine, samples.version)
    columns: dict[str, object] = {name: [value] * len(samples) for name, value in zip(HEAD, head, strict=True)}
    columns |= {name: samples.columns[name] for name in SHAPE_COLUMNS[samples.kind]}
    table = pa.table({**columns, "latency_s": samples.latency_s})
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, begins_with(b"PAR1")) as beside:
        pq.write_table(table, beside, compression="zstd")


def write_samples(samples: SampleTable, path: Path) -> None:
    """Write such a file, whole or not at all; raises ``FileError`` if that cannot be done, or another stands there."""
    names = SHAPE_COLUMNS[samples.kind]
    columns = [samples.columns[name].tolist() for name in names]
    head = (samples.kind, samples.accelerator, samples.engine, samples.version)
    own = begins_with(",".join(HEAD).encode() + b",")
    with replacing(path, own) as beside, beside.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*HEAD, *names, "latency_s"])
        for *shape, latency_s in zip(*columns, samples.latency_s.tolist(), strict=True):
            writer.writerow([*head, *shape, f"{latency_s:.7g}"])
