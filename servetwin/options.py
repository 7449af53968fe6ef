"""Options that mean the same in several commands, and what they make of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from simcore.core.scratch import temporary_folder

Scenario = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file (YAML).")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override one value, such as cluster.replicas=2; repeatable."),
]
Pool = Annotated[str | None, typer.Option(metavar="NAME", help="Of which pool; the first by default.")]
Out = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The folder to write; one in runs/ by default, none with --json.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON alone.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Jobs = Annotated[int | None, typer.Option(metavar="N", help="Runs at a time; one per core.")]
Ray = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on a Ray cluster: its address, or local for one on this machine."),
]


def folder_of(out: Path | None, as_json: bool, default: str) -> Path | None:
    """The folder to write: what ``--out`` says, or else one in ``runs/``; None where JSON is printed instead."""
    return out if out is not None or as_json else Path("runs") / default


@contextmanager
def place_of(folder: Path | None) -> Iterator[Path]:
    """The folder, or a temporary one where none is to be written."""
    if folder is not None:
        yield folder
        return
    with temporary_folder() as temporary:
        yield temporary
