"""Finished runs on disk, so that an interrupted comparison goes on where it was."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from experiments.comparison.compared_metrics import RunRecord
from experiments.comparison.plan import PlannedRun
from simcore.core.errors import FileError
from simcore.core.files import parse_json
from simcore.core.outputs import FolderKind, begins_with, replace_folder
from simcore.core.result import Columns
from simcore.output.run_folder import write_table

RUN = "run.json"
REQUESTS = "requests.parquet"
KEPT_RUN = FolderKind(
    "a kept run",
    (),
    {RUN: begins_with(b'{\n  "fingerprint": "', b'{"fingerprint": "'), REQUESTS: begins_with(b"PAR1")},
)


@dataclass(frozen=True, slots=True)
class RunStore:
    """A folder with a folder for every finished run.

    A run is there whole or not at all.
    """

    folder: Path

    def holds(self, run: PlannedRun) -> bool:
        """Whether this very run is there: the same scenario, files and code."""
        try:
            kept = parse_json((self.folder / run.name / RUN).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return False
        whole = isinstance(kept, dict) and isinstance(kept.get("summary"), dict)
        return whole and kept.get("fingerprint") == run.fingerprint and (self.folder / run.name / REQUESTS).is_file()

    def keep(self, run: PlannedRun, summary: Mapping[str, Any], requests: Columns) -> None:
        """Write what comparisons need of a finished run; raises ``FileError`` if that cannot be done."""
        kept = {"fingerprint": run.fingerprint, "scenario": run.document, "summary": summary}

        def write(place: Path) -> None:
            rows = len(requests["request_id"])
            of_run = {"variant": np.full(rows, run.variant), "seed": np.full(rows, run.seed)}
            write_table(of_run | dict(requests), place / REQUESTS, summary)
            (place / RUN).write_text(json_text(kept), encoding="utf-8")

        replace_folder(self.folder / run.name, KEPT_RUN, write)

    def record(self, run: PlannedRun) -> RunRecord:
        """What was kept of a run that is there; raises ``FileError`` if it cannot be read."""
        place = self.folder / run.name
        try:
            summary = parse_json((place / RUN).read_text(encoding="utf-8"))["summary"]
            with (place / REQUESTS).open("rb") as file:
                table = parquet.read_table(file).sort_by("request_id")  # arrivals may depend on the variant
        except (OSError, ValueError, pa.ArrowException) as error:
            raise FileError(place, "holds no readable run; delete it, and it is run again") from error
        return RunRecord(summary, {name: table[name].to_numpy() for name in table.column_names})


def json_text(document: Mapping[str, Any]) -> str:
    """A document as JSON, for people to read too."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
