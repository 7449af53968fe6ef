"""Putting files into ``docs/results``, or telling which of them differ from what would be put there."""

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results"


def publish(write: Callable[[Path], None], check: bool, folder: Path = RESULTS) -> int:
    """Let ``write`` fill the folder; returns the exit code.

    With ``check`` it fills another instead, and the exit code is 1, with the names printed, if any file of that is not
    the same here, to the byte. Figures are if the same version of matplotlib draws them.
    """
    if not check:
        write(folder)
        return 0
    with TemporaryDirectory() as name:
        made = Path(name)
        write(made)
        files = sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
        differ = [file for file in files if not _same(made / file, folder / file)]
    for file in differ:
        print(f"{file.as_posix()} differs from what would be written", file=sys.stderr)
    return int(bool(differ))


def publish_page(document: Path, text: str, check: bool) -> int:
    """Write one document, or with ``check`` compare; returns the exit code."""
    if check:
        return int(not document.exists() or document.read_text(encoding="utf-8") != text)
    document.write_text(text, encoding="utf-8")
    return 0


def _same(made: Path, kept: Path) -> bool:
    return kept.exists() and kept.read_bytes() == made.read_bytes()
