"""The command line: what users type first."""

from typing import Annotated

import typer

from servetwin import calibrate_options as options
from servetwin.clock_names import CalibrationClock
from servetwin.lazy_commands import LazyCommand, lazy_app
from servetwin.options import AsJson

COMMANDS = {
    "run": LazyCommand("servetwin.run_command:run", "Simulate a scenario and write a run folder."),
    "live": LazyCommand(
        "servetwin.live_command:live", "Run a scenario on the live engine: a real model, in real time."
    ),
    "validate": LazyCommand(
        "servetwin.validate_command:validate", "Hold the simulator against the live engine, on this machine."
    ),
    "chat": LazyCommand("servetwin.chat_command:chat", "Talk with a model in the terminal, through the live engine."),
    "compare": LazyCommand("servetwin.compare_command:compare", "Compare variants of a scenario on the same requests."),
    "plan": LazyCommand(
        "servetwin.plan_command:plan", "Tell how many of which GPU hold limits, set up how, at what cost."
    ),
    "sweep": LazyCommand("servetwin.sweep_command:sweep", "Run a scenario over many settings, into one table."),
    "memory": LazyCommand("servetwin.memory_command:memory", "Show where memory goes and how many requests fit."),
    "explain": LazyCommand("servetwin.explain_command:explain", "Show where a step's time goes."),
    "dashboard": LazyCommand("servetwin.dashboard_command:dashboard", "Open what-if pages in a browser."),
    "models": LazyCommand("servetwin.fact_commands:models", "List the models known by name."),
    "hardware": LazyCommand("servetwin.app:hardware_app", "List accelerators; show and compare kernel profiles."),
    "policies": LazyCommand("servetwin.policies_command:policies", "List policies by kind, with their sources."),
    "parity": LazyCommand("servetwin.parity_command:parity", "Hold the scheduler's decisions against recorded ones."),
    "fidelity": LazyCommand("servetwin.fidelity_command:fidelity", "Hold the simulator against measured engines."),
    "repro": LazyCommand("servetwin.repro_command:repro", "Run a paper's experiment, and tell what of it holds."),
    "doctor": LazyCommand("servetwin.doctor_command:doctor", "Report versions, usable parts and clashing packages."),
    "trace": LazyCommand("servetwin.app:trace_app", "Describe and fetch traces of requests."),
    "calibrate": LazyCommand(
        "servetwin.app:calibrate_app", "Measure this machine and fit a kernel profile of it, or import measurements."
    ),
}
TRACE_COMMANDS = {
    "cache": LazyCommand(
        "servetwin.trace_cache_command:cache_command", "Tell what a prefix cache would find in a trace."
    ),
    "describe": LazyCommand(
        "servetwin.trace_commands:describe_command", "Describe a trace: counts, lengths, gaps, burstiness, reuse."
    ),
    "list": LazyCommand("servetwin.trace_commands:list_command", "List the public traces that can be fetched."),
    "fetch": LazyCommand("servetwin.trace_commands:fetch_command", "Download a public trace, checked by its SHA-256."),
}
CALIBRATE_COMMANDS = {
    "import": LazyCommand(
        "servetwin.calibrate_commands:import_command",
        "Write public measurements in servetwin's form, one file per kernel kind, accelerator, engine and version.",
    ),
    "fit": LazyCommand(
        "servetwin.calibrate_commands:fit_command",
        "Fit samples of one accelerator to a profile, and say how well it predicts what it has not seen.",
    ),
}

HARDWARE_COMMANDS = {
    "show": LazyCommand(
        "servetwin.hardware_commands:show", "Show an accelerator's ceilings, or what a kernel profile knows."
    ),
    "diff": LazyCommand("servetwin.hardware_commands:diff", "Show how far two kernel profiles are apart."),
}

app = lazy_app("servetwin", "A twin of an LLM inference service.", COMMANDS)
trace_app = lazy_app("trace", COMMANDS["trace"].line, TRACE_COMMANDS)
calibrate_app = lazy_app("calibrate", COMMANDS["calibrate"].line, CALIBRATE_COMMANDS, runs_alone=True)
hardware_app = lazy_app("hardware", COMMANDS["hardware"].line, HARDWARE_COMMANDS, runs_alone=True)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version  # not needed for anything else

        typer.echo(f"servetwin {version('servetwin')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """A twin of an LLM inference service."""


@trace_app.callback()
def _trace() -> None:
    """Describe and fetch traces of requests."""


@calibrate_app.callback(invoke_without_command=True)
def _calibrate(
    context: typer.Context,
    device: options.Device = None,
    models: options.For = None,
    minutes: options.Minutes = 8.0,
    kernels: options.Kernels = "all",
    out: options.Out = None,
    resume: options.Resume = False,
    force: options.Force = False,
    target_error: options.Target = 0.02,
    dtype: options.DtypeOption = None,
    clock: CalibrationClock = None,
) -> None:
    """Measure this machine and fit a kernel profile of it, or import measurements."""
    if context.invoked_subcommand is None:
        from servetwin.calibrate_command import calibrate

        calibrate(device, models, minutes, kernels, out, resume, force, target_error, dtype, clock)


@hardware_app.callback(invoke_without_command=True)
def _hardware(context: typer.Context, as_json: AsJson = False) -> None:
    """List accelerators; show and compare kernel profiles."""
    if context.invoked_subcommand is None:
        from servetwin.fact_commands import hardware

        hardware(as_json)
