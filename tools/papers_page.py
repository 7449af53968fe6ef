"""Run papers and write ``docs/results/papers.md``: ``python -m tools.papers_page [NAME ...] [--page] [--check]``.

Without names all papers are run. What was measured is kept in ``docs/results/papers/NAME.json``, from which the page is
made; ``--page`` runs nothing and makes it of what is kept. Each paper's report goes to ``runs/papers/NAME``. With
``--check`` nothing is written, and the exit code is 1 if what would be written differs.
"""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from textwrap import fill
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from experiments.runners import runner_of  # noqa: E402
from papers.harness.catalogue import paper_names, published_of, study_of  # noqa: E402
from papers.harness.findings import DOES_NOT_HOLD, HOLDS, IN_DIRECTION, Finding, Findings, evaluate  # noqa: E402
from papers.harness.folder import write_paper_folder  # noqa: E402
from papers.harness.report import render_paper  # noqa: E402
from papers.harness.running import reproduce, tasks_of  # noqa: E402
from papers.harness.study import Measured  # noqa: E402
from papers.harness.wording import (  # noqa: E402
    CLAIM_COLUMNS,
    COMPARISON_COLUMNS,
    claim_rows,
    comparison_rows,
    reasons,
    rule,
)
from tools.publishing import publish  # noqa: E402

DOCS = ROOT / "docs" / "results"
KEPT = "papers"
HEAD = (ROOT / "tools" / "papers_page.md").read_text(encoding="utf-8")


def measured_text(measured: Measured) -> str:
    """What was measured, as kept."""
    kept: dict[str, Any] = {}
    for (setup, system), figures in measured.figures.items():
        kept.setdefault(setup, {})[system] = figures
    return json.dumps(kept, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def kept_measured(path: Path) -> Measured:
    """What was measured when the paper was last run."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    return Measured(
        {(setup, system): figures for setup, systems in kept.items() for system, figures in systems.items()}
    )


def page(found: Sequence[Findings]) -> str:
    """The page of all papers."""
    counts = [finding.verdict for findings in found for finding in findings.claims]
    told = ", ".join(f"*{verdict}* {counts.count(verdict)}" for verdict in (HOLDS, IN_DIRECTION, DOES_NOT_HOLD))
    lines = [HEAD.rstrip(), "", fill(f"{len(counts)} claims of {len(found)} papers: {told}.", width=120), ""]
    lines += ["## What to do today", ""]
    lines += _table(
        ("paper", "today"),
        (
            (f"[{findings.published.title.partition(':')[0]}](#{findings.name})", findings.practice)
            for findings in found
        ),
    )
    for findings in found:
        lines += ["", *_paper(findings)]
    return "\n".join(lines) + "\n"


def _paper(findings: Findings) -> Iterator[str]:
    published = findings.published
    yield f"## {findings.name}"
    yield ""
    for text in (
        f"{published.title}. {published.authors}, {published.venue}. {published.idea}",
        f"**Published setting.** {published.setting}",
        f"**Ours.** {published.substitute}",
        f"**Rule.** {rule(findings)}",
    ):
        yield fill(" ".join(text.split()), width=120)
        yield ""
    yield from _table(CLAIM_COLUMNS, claim_rows(findings))
    for reason in reasons(findings):
        yield ""
        yield fill(" ".join(reason.split()), width=120)
    others: list[Finding] = [*findings.ablations, *findings.sensitivity, *findings.today]
    if others:
        yield ""
        yield from _table(COMPARISON_COLUMNS, comparison_rows(others))


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield f"| {' | '.join(' '.join(cell.split()).replace('|', '/') for cell in row)} |"


def write(folder: Path, names: Sequence[str]) -> None:
    """Run these papers, keep what was measured, and make the page of all that were ever run."""
    (folder / KEPT).mkdir(parents=True, exist_ok=True)
    for name in names:
        started = time.perf_counter()
        with closing(runner_of(most=len(tasks_of(name)))) as runner:
            findings, measured, study = reproduce(name, runner)
        (folder / KEPT / f"{name}.json").write_text(measured_text(measured), encoding="utf-8")
        charts = study.charts(measured, findings.published.curves)
        write_paper_folder(findings, render_paper(findings, charts), ROOT / "runs" / "papers" / name)
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
    found = []
    for name in paper_names():
        ran = folder / KEPT / f"{name}.json"
        kept = ran if ran.exists() else DOCS / KEPT / f"{name}.json"
        if kept.exists():
            found.append(evaluate(name, published_of(name), kept_measured(kept)))
    (folder / "papers.md").write_text(page(found), encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Run and write, or compare; returns the exit code."""
    names = [argument for argument in arguments if not argument.startswith("--")]
    for name in names:
        study_of(name)  # an unknown name is told before anything runs
    if not names and "--page" not in arguments:
        names = paper_names()
    return publish(lambda folder: write(folder, names), "--check" in arguments, DOCS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
