"""``servetwin parity``: hold the scheduler against recordings of a real one."""

from pathlib import Path
from typing import Annotated

import typer

from fidelity.parity import first_difference, read_recording


def parity(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Recordings in JSON.")],
) -> None:
    """Hold the scheduler's decisions against recorded ones.

    The exit code is 1 if any differs; the first that does is shown.
    """
    differ = False
    for path in files:
        recording = read_recording(path)
        difference = first_difference(recording)
        differ |= difference is not None
        verdict = f"{len(recording.steps)} steps equal" if difference is None else f"differs at {difference}"
        typer.echo(f"{path.name}: {verdict}")
        if recording.unread:
            typer.echo(f"Warning: {path.name} states what is not looked at: {', '.join(recording.unread)}.", err=True)
    if differ:
        raise typer.Exit(1)
