"""Write the figures that documents show: ``python docs/regenerate.py [--check]``.

Between a document's markers stands the output of a run. With ``--check`` nothing is written, and the exit code is 1 if
a document differs from what would be.
"""

import io
import sys
from pathlib import Path

from rich.console import Console

from servetwin.api import simulate
from servetwin.run_table import print_run

ROOT = Path(__file__).resolve().parent.parent
START, END = "<!-- quickstart: made by docs/regenerate.py -->", "<!-- end of quickstart -->"


def quickstart() -> str:
    """What ``make run`` prints, without the line on how long it took."""
    result = simulate(ROOT / "scenarios" / "quickstart.yaml")
    stream = io.StringIO()
    print_run(result, Console(file=stream, width=100, highlight=False))
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    return "\n".join(line for line in lines if not line.startswith(("simulated ", "Warning:")))


def with_block(document: str, block: str) -> str:
    """The document with the text between the markers replaced."""
    head, _, rest = document.partition(START)
    _, _, tail = rest.partition(END)
    return f"{head}{START}\n```\n{block}\n```\n{END}{tail}"


def main(check: bool) -> int:
    """Regenerate, or compare; returns the exit code."""
    readme = ROOT / "README.md"
    before = readme.read_text(encoding="utf-8")
    after = with_block(before, quickstart())
    if check:
        return int(before != after)
    readme.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
