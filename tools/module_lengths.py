"""Say which modules are longer than a page or two holds: ``python tools/module_lengths.py``; exit code 1 if any is.

Tests are not looked at: a table of cases may be long.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES = 300


def too_long(root: Path = ROOT) -> list[tuple[str, int]]:
    """Modules of more than ``MOST_LINES`` lines, with their lines; of those that git knows or would."""
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py")
    names = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    lengths = {
        name: len((root / name).read_text(encoding="utf-8").splitlines())
        for name in names
        if not name.startswith("tests/") and (root / name).exists()
    }
    return sorted((name, lines) for name, lines in lengths.items() if lines > MOST_LINES)


if __name__ == "__main__":
    found = too_long()
    for name, lines in found:
        print(f"{name}: {lines} lines, expected at most {MOST_LINES}", file=sys.stderr)
    sys.exit(1 if found else 0)
