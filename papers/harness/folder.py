"""The folder of a reproduced paper: ``findings.json`` and ``report.html``, written whole or not at all."""

import json
from pathlib import Path

from papers.harness.findings import Findings
from simcore.core.outputs import FolderKind, begins_with, check_folder, is_page, replace_folder

FINDINGS, REPORT = "findings.json", "report.html"
PAPER_FOLDER = FolderKind(
    "a reproduced paper", (FINDINGS,), {FINDINGS: begins_with(b'{\n  "paper": '), REPORT: is_page}
)


def check_paper_folder(folder: Path) -> None:
    """Raise ``FileError`` unless a reproduced paper can be written to ``folder``."""
    check_folder(folder, PAPER_FOLDER)


def findings_text(findings: Findings) -> str:
    """What ``findings.json`` holds."""
    return json.dumps(findings.document(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def write_paper_folder(findings: Findings, report: str, folder: Path) -> None:
    """Write the folder; raises ``FileError`` as ``check_paper_folder`` does, or if it cannot be written."""

    def fill(new: Path) -> None:
        (new / FINDINGS).write_text(findings_text(findings), encoding="utf-8")
        (new / REPORT).write_text(report, encoding="utf-8")

    replace_folder(folder, PAPER_FOLDER, fill)
