"""Rows of a Parquet file. Arrow is slow to import, so only reading one does so."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from simcore.core.errors import FileError
from simcore.core.files import opening


def column_names(path: Path) -> list[str]:
    """The columns of the file. Raises FileError for one that is no Parquet file."""
    with _opened(path) as parquet:
        return list(parquet.schema_arrow.names)


def rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[object]]]:
    """Row number, from 1, and the values of ``columns``; times of day come as datetime64[ns] in UTC."""
    with _opened(path) as parquet:
        number = 0
        for batch in parquet.iter_batches(batch_size=65_536, columns=list(columns)):
            for values in zip(*(_values(batch.column(name)) for name in columns), strict=True):
                number += 1
                yield number, list(values)


def _values(column: Any) -> list[object]:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        nanoseconds = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64()).to_pylist()
        return [None if count is None else np.datetime64(count, "ns") for count in nanoseconds]
    return list(column.to_pylist())


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with opening(path, "Parquet file"):
        try:
            with path.open("rb") as file, pq.ParquetFile(file) as parquet:  # Arrow takes no path that is not UTF-8
                yield parquet
        except (ValueError, pa.ArrowException) as error:
            raise FileError(path, "is not a Parquet file") from error
