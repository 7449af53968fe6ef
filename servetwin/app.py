"""The command line: what users type first."""

from importlib.metadata import version
from typing import Annotated

import typer

from servetwin.calibrate_commands import calibrate_app
from servetwin.compare_command import compare
from servetwin.doctor_command import doctor
from servetwin.explain_command import explain
from servetwin.fact_commands import hardware, models
from servetwin.fidelity_command import fidelity
from servetwin.memory_command import memory
from servetwin.parity_command import parity
from servetwin.policies_command import policies
from servetwin.run_command import run
from servetwin.trace_commands import trace_app

app = typer.Typer(
    name="servetwin",
    help="A twin of an LLM inference service.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)
app.command()(run)
app.command()(compare)
app.command()(memory)
app.command()(explain)
app.command()(models)
app.command()(hardware)
app.command()(policies)
app.command()(parity)
app.command()(fidelity)
app.command()(doctor)
app.add_typer(trace_app, name="trace")
app.add_typer(calibrate_app, name="calibrate")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"servetwin {version('servetwin')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """A twin of an LLM inference service."""
