"""The folder of a comparison: ``comparison.json``, ``report.html``, and ``runs/`` with what finished."""

import json
import os
from pathlib import Path

from experiments.comparison.comparison import Comparison
from experiments.comparison.plan import Plan
from experiments.comparison.run_store import write_json
from simcore.core.errors import FileError
from simcore.core.files import writing

COMPARISON = "comparison.json"
REPORT = "report.html"
RUNS = "runs"
_PARTS = (COMPARISON, REPORT, RUNS, f"{COMPARISON}.part", f"{REPORT}.part")


def check_comparison_folder(folder: Path) -> None:
    """Raise ``FileError`` unless a comparison can be written to ``folder``: missing, empty, or another one's."""
    with writing(folder):
        _check_place(folder)


def _check_place(folder: Path) -> None:
    parent = folder.absolute()
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if not parent.is_dir():
        raise FileError(folder, f"cannot be written, since {parent} is no folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise FileError(folder, f"cannot be written, since {parent} allows no new entries")
    found = sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []
    others = [name for name in found if name not in _PARTS]
    if others or (found and RUNS not in found):
        raise FileError(folder, f"holds {(others or found)[0]!r}, which is no part of a comparison")


def earlier_looks(plan: Plan, folder: Path) -> tuple[int, ...]:
    """The numbers of seeds at which results of the same comparison were written to ``folder`` before."""
    try:
        earlier = json.loads((folder / COMPARISON).read_text(encoding="utf-8"))
        same = earlier["scenario"] == plan.baseline_document and earlier["varied"] == list(plan.varied)
        return tuple(int(look) for look in earlier["looks"]) if same else ()
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def write_comparison(comparison: Comparison, folder: Path, report: str) -> None:
    """Write the comparison and its report beside the runs; raises ``FileError`` if that cannot be done."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / RUNS).mkdir(exist_ok=True)
        write_json(comparison.document(), folder / COMPARISON)
        part = folder / f"{REPORT}.part"
        part.write_text(report, encoding="utf-8")
        os.replace(part, folder / REPORT)
