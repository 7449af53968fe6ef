"""Finished runs on disk, so that an interrupted comparison goes on where it was."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from experiments.comparison.compared_metrics import KEPT_COLUMNS, RunRecord
from experiments.comparison.plan import PlannedRun
from simcore.core.errors import FileError
from simcore.core.files import writing
from simcore.core.result import Result

RUN = "run.json"
REQUESTS = "requests.parquet"


@dataclass(frozen=True, slots=True)
class RunStore:
    """A folder with a folder for every finished run.

    A run is there if its ``run.json`` is, which is written last and in one go.
    """

    folder: Path

    def holds(self, run: PlannedRun) -> bool:
        """Whether this very run is there: the same scenario, files and code."""
        try:
            kept = json.loads((self.folder / run.name / RUN).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return isinstance(kept, dict) and kept.get("fingerprint") == run.fingerprint

    def keep(self, run: PlannedRun, result: Result) -> None:
        """Write what comparisons need of a finished run; raises ``FileError`` if that cannot be done."""
        place = self.folder / run.name
        with writing(place):
            place.mkdir(parents=True, exist_ok=True)
            (place / RUN).unlink(missing_ok=True)
            table = pa.table({name: pa.array(result.requests[name]) for name in KEPT_COLUMNS})
            with (place / REQUESTS).open("wb") as file:  # Arrow takes no path that is not UTF-8
                parquet.write_table(table, file, compression="zstd")
            kept = {"fingerprint": run.fingerprint, "scenario": run.document, "summary": result.summary}
            write_json(kept, place / RUN)

    def record(self, run: PlannedRun) -> RunRecord:
        """What was kept of a run that is there; raises ``FileError`` if it cannot be read."""
        place = self.folder / run.name
        try:
            summary = json.loads((place / RUN).read_text(encoding="utf-8"))["summary"]
            with (place / REQUESTS).open("rb") as file:
                table = parquet.read_table(file).sort_by("request_id")  # arrivals may depend on the variant
        except (OSError, ValueError, pa.ArrowException) as error:
            raise FileError(place, "holds no readable run; delete it, and it is run again") from error
        return RunRecord(summary, {name: table[name].to_numpy() for name in KEPT_COLUMNS})


def write_json(document: Mapping[str, Any], path: Path) -> None:
    """Write a document at once: whoever reads sees the old file or the new one. Raises ``OSError``."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(part, path)
