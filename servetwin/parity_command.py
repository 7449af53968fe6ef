"""``servetwin parity``: hold the scheduler against recordings of a real one."""

from pathlib import Path
from typing import Annotated

import typer

from fidelity.parity import first_difference, read_recording, unread
from servetwin.console import say


def parity(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Recordings in JSON.")],
) -> None:
    """Hold the scheduler's decisions against recorded ones.

    Says for each recording what it was taken for and which fields of its steps were compared. The exit code is 1 if any
    differs; the first that does is shown.
    """
    differ = False
    for path in files:
        recording = read_recording(path)
        difference = first_difference(recording)
        differ |= difference is not None
        steps = len(recording.recorded_steps)
        verdict = f"{steps} steps equal" if difference is None else f"differs at {difference}"
        say(f"{path.name}: {verdict} ({recording.kind}; compared {', '.join(recording.compared)})")
        ignored = unread(recording)
        if ignored:
            typer.echo(f"Warning: {path.name} states what is not looked at: {', '.join(ignored)}.", err=True)
    if differ:
        raise typer.Exit(1)
