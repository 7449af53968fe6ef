"""``servetwin repro``: run a paper's experiment, and tell what of its results holds."""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.runners import runner_of
from papers.harness.catalogue import paper_names, published_of
from papers.harness.findings import Findings
from papers.harness.folder import check_paper_folder, findings_text, write_paper_folder
from papers.harness.running import reproduce, tasks_of
from papers.harness.wording import CLAIM_COLUMNS, COMPARISON_COLUMNS, claim_rows, comparison_rows, reasons, rule
from servetwin.console import console, plain_table, print_table, say
from simcore.core.errors import InputError, Phrase


def repro(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A paper that --list names.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the papers.")] = False,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="A run of seconds that shows directions alone, in the paper's own setup.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder to write; runs/papers/NAME, none with --json."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON alone.")] = False,
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Runs at a time; one per core.")] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on a Ray cluster: its address, or local for one on this machine."),
    ] = None,
) -> None:
    """Run a paper's experiment, and tell what of it holds.

    The folder holds a report with the paper's figures, ours beside the published values.
    """
    if list_:
        _print_list()
        return
    if name is None:
        raise InputError("servetwin repro", Phrase("given no paper"), "the name of one, or --list")
    published_of(name)
    if smoke and out is not None:
        raise InputError("--out", str(out), "no folder with --smoke, which measures too little for a report")
    folder = out if out is not None or as_json or smoke else Path("runs") / "papers" / name
    if folder is not None:
        check_paper_folder(folder)
    with (
        closing(runner_of(jobs, ray, most=len(tasks_of(name, smoke)))) as runner,
        _progress_bar(shown=not as_json) as progress,
    ):
        findings, measured, study = reproduce(name, runner, smoke, progress)
    if folder is not None:
        from papers.harness.report import render_paper  # plotly is slow to import

        charts = study.charts(measured, findings.published.curves)
        write_paper_folder(findings, render_paper(findings, charts), folder)
    if as_json:
        sys.stdout.write(findings_text(findings))
        return
    print_findings(findings, console())
    if folder is not None:
        say(f"Report: {folder / 'report.html'}")


def print_findings(findings: Findings, to: Console) -> None:
    """Print what holds, why not, on what it depends, and what to do today."""
    published = findings.published
    to.print(f"[bold]{escape(published.title)}[/] ({escape(published.authors)}, {escape(published.venue)})")
    for line in (f"Published setting: {published.setting}", f"Ours: {published.substitute}", rule(findings)):
        to.print(escape(" ".join(line.split())), soft_wrap=True)
    claims = plain_table(*CLAIM_COLUMNS, justify="left")
    for row in claim_rows(findings):
        claims.add_row(*map(escape, row))
    print_table(claims, to)
    for sentence in reasons(findings):
        to.print(escape(" ".join(sentence.split())), soft_wrap=True)
    others = [*findings.ablations, *findings.sensitivity, *findings.today]
    if others:
        table = plain_table(*COMPARISON_COLUMNS, justify="left")
        for row in comparison_rows(others):
            table.add_row(*map(escape, row))
        print_table(table, to)
    if findings.practice:
        to.print(escape(f"Today: {findings.practice}"), soft_wrap=True)


def _print_list() -> None:
    table = plain_table("name", "paper", "venue", "idea", justify="left")
    for name in paper_names():
        published = published_of(name)
        table.add_row(name, *map(escape, (published.title, published.venue, published.idea)))
    print_table(table, console())


@contextmanager
def _progress_bar(shown: bool) -> Iterator[Callable[[int, int], None]]:
    """Finished cells on standard error, if that is a terminal."""
    terminal = Console(stderr=True)
    if not (shown and terminal.is_terminal):
        yield lambda done, total: None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("runs"), TimeElapsedColumn())
    with Progress(*columns, console=terminal, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
