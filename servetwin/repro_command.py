"""``servetwin repro``: run a paper's experiment, and tell what of its results holds."""

import sys
from contextlib import closing
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from experiments.runners import runner_of
from papers.harness.catalogue import paper_names, published_of
from papers.harness.findings import Findings
from papers.harness.folder import check_paper_folder, findings_text, write_paper_folder
from papers.harness.running import reproduce, tasks_of
from papers.harness.wording import CLAIM_COLUMNS, COMPARISON_COLUMNS, claim_rows, comparison_rows, reasons, rule
from servetwin.console import console, plain_table, print_table, say
from servetwin.options import AsJson, Jobs, Out, Ray, folder_of
from servetwin.progress import progress_bar
from simcore.core.errors import InputError, Phrase


def repro(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A paper that --list names.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the papers.")] = False,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="A run of seconds that shows directions alone, in the paper's own setup.")
    ] = False,
    out: Out = None,
    as_json: AsJson = False,
    jobs: Jobs = None,
    ray: Ray = None,
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
    folder = folder_of(out, as_json or smoke, f"papers/{name}")
    if folder is not None:
        check_paper_folder(folder)
    most = len(tasks_of(name, smoke))
    with (
        closing(runner_of(jobs, ray, most=most)) as runner,
        progress_bar("runs", not as_json, most) as update,
    ):

        def told(done: int, total: int) -> None:
            if update is not None:
                update(completed=done, total=total)

        findings, measured, study = reproduce(name, runner, smoke, told)
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
