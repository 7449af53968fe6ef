"""The folder of a comparison: ``comparison.json``, ``report.html``, and ``runs/`` with what finished."""

from pathlib import Path

from experiments.comparison.comparison import Comparison
from experiments.comparison.plan import Plan
from experiments.comparison.run_store import KEPT_RUN, json_text
from simcore.core.errors import FileError
from simcore.core.files import parse_json, writing
from simcore.core.outputs import (
    Recogniser,
    begins_with,
    check_file,
    check_parents,
    is_page,
    is_scratch,
    replace_text,
    resolved,
)
from simcore.core.scratch import remove_left_over

COMPARISON = "comparison.json"
REPORT = "report.html"
RUNS = "runs"
_FILES: dict[str, Recogniser] = {COMPARISON: begins_with(b'{\n  "schema_version": '), REPORT: is_page}


def check_comparison_folder(folder: Path) -> None:
    """Raise ``FileError`` unless a comparison can be written to ``folder``: missing, empty, or another one's."""
    with writing(folder):
        place = resolved(folder)
        check_parents(place, folder)
        if not place.exists():
            return
        if not place.is_dir():
            raise FileError(folder, "is no folder, so no comparison can be written there")
        found = sorted(entry.name for entry in place.iterdir() if not is_scratch(entry.name))
        others = [name for name in found if name not in (*_FILES, RUNS)]
        if others or (found and RUNS not in found):
            raise FileError(folder, f"holds {(others or found)[0]!r}, which is no part of a comparison")
        for name, recognise in _FILES.items():
            check_file(place / name, recognise)
        if found:
            _check_runs(folder, place / RUNS)


def _check_runs(folder: Path, runs: Path) -> None:
    if not runs.is_dir():
        raise FileError(folder, f"holds {RUNS!r}, which is no folder of finished runs")
    for entry in runs.iterdir():
        stranger = (
            None
            if is_scratch(entry.name)
            else KEPT_RUN.stranger(entry)
            if entry.is_dir()
            else "is no folder of a finished run"
        )
        if stranger is not None:
            raise FileError(entry, f"{stranger}: choose another folder, or move that away")


def earlier_looks(plan: Plan, folder: Path) -> tuple[int, ...]:
    """The numbers of seeds at which results of the same comparison were written to ``folder`` before."""
    try:
        earlier = parse_json((folder / COMPARISON).read_text(encoding="utf-8"))
        same = earlier["scenario"] == plan.baseline_document and earlier["varied"] == list(plan.varied)
        return tuple(int(look) for look in earlier["looks"]) if same else ()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ()


def write_comparison(comparison: Comparison, folder: Path, report: str) -> None:
    """Write the comparison and its report beside the runs; raises ``FileError`` if that cannot be done."""
    with writing(folder):
        (folder / RUNS).mkdir(parents=True, exist_ok=True)
    remove_left_over(folder / RUNS)
    for name, text in ((COMPARISON, json_text(comparison.document())), (REPORT, report)):
        replace_text(folder / name, text, _FILES[name])
