"""``servetwin fidelity``: hold the simulator against measured engines."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dashboard.fidelity_wording import shown
from fidelity.document import document
from fidelity.evaluation import evaluate
from fidelity.fitted import FITTED
from fidelity.table import Table
from fidelity.tables import tables
from servetwin.console import console, plain_table
from servetwin.options import AsJson, Jobs
from servetwin.progress import progress_bar
from simcore.core.errors import InputError, Phrase
from simcore.core.outputs import begins_with, replace_text


def fidelity(
    runs: Annotated[
        list[Path] | None, typer.Option(metavar="CSV", help="A file of measured engine runs; repeatable.")
    ] = None,
    per_request: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A folder of one run with every request; repeatable."),
    ] = None,
    references: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder with the other references (profiles/, measured/).")
    ] = None,
    posts: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A posted result (scenario.yaml, measured.json), or a folder of them."),
    ] = None,
    adapt: Annotated[
        list[Path] | None,
        typer.Option(metavar="RUN", help="Fit the host to runs: a file of engine runs, or posted results; repeatable."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="YAML", help="Where --adapt writes the host's constants.")] = None,
    as_json: AsJson = False,
    jobs: Jobs = None,
    bands: Annotated[
        int, typer.Option(metavar="N", help="Repeat every run so many times, such as 20, for its uncertainty band.")
    ] = 0,
) -> None:
    """Hold the simulator against measured engines.

    Repeats their runs and tells how far it is off. A row that cannot be simulated is counted with the reason.
    """
    if adapt:
        _adapt(adapt, out, jobs)
        return
    if out is not None:
        raise InputError("--out", str(out), "--adapt with it")
    if not (runs or per_request or references or posts):
        expected = "--runs, --per-request, --posts, --references or --adapt"
        raise InputError("servetwin fidelity", Phrase("given no files"), expected)
    with progress_bar("runs", not as_json, total=0) as update:
        progress = None if update is None else lambda done, total: update(completed=done, total=total)
        found = evaluate(runs or (), per_request or (), references, jobs, progress, bands, posts=posts or ())
    if as_json:
        sys.stdout.write(json.dumps(document(found), indent=1, allow_nan=False) + "\n")
        return
    _print_tables(tables(found))
    terminal = console()
    terminal.print("Constants that were fitted to measured runs, these or others:", soft_wrap=True)
    for constant in FITTED:
        terminal.print(escape(f"- {constant}"), soft_wrap=True)


def _adapt(paths: list[Path], out: Path | None, jobs: int | None) -> None:
    from fidelity.adaptation import HEADING, adapt  # scipy's optimisers are slow to import

    if out is not None and out.suffix not in (".yaml", ".yml"):
        raise InputError("--out", str(out), "a file that ends in .yaml")
    with progress_bar("runs", True, total=0) as update:
        progress = None if update is None else lambda done, total: update(completed=done, total=total)
        found = adapt(paths, jobs, progress)
    _print_tables(found.tables())
    if out is not None:
        replace_text(out, found.document(), begins_with(HEADING.encode()))
        console().print(f"A scenario takes it by `host: {escape(str(out))}`.", soft_wrap=True)


def _print_tables(found: Iterable[Table]) -> None:
    terminal = console()
    for table in found:
        terminal.print(f"[bold]{escape(table.title)}[/]", soft_wrap=True)
        printed = plain_table(*table.columns)
        for row in table.rows:
            printed.add_row(*(escape(shown(cell)) for cell in row))
        terminal.print(printed)
        if table.note:
            terminal.print(escape(table.note), soft_wrap=True)
            terminal.print()
