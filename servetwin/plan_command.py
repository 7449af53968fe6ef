"""``servetwin plan``: which set-ups hold limits on a workload, and which of them is the cheapest."""

import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.planner.answers import answers_of
from experiments.planner.folder import check_plan_folder, plan_text, write_plan
from experiments.planner.planning import make_plan
from experiments.planner.question import ask
from experiments.planner.sensitivity import sensitivity as effects_of
from experiments.planner.stages import DEFAULT_MOST_REQUESTS
from experiments.runners import runner_of
from servetwin.console import console, say
from servetwin.objectives_option import objectives
from servetwin.options import AsJson, Jobs, Out, Overrides, Quiet, Ray, folder_of
from servetwin.plan_table import print_answers, print_effects
from servetwin.progress import progress_bar
from servetwin.varied import names, varied_values
from simcore.core.errors import InputError
from simcore.scenario import override, read_scenario

_SCENARIO_SUFFIXES = (".yaml", ".yml")


def plan(
    workload: Annotated[
        Path,
        typer.Argument(metavar="WORKLOAD", help="A scenario file (YAML), of which the workload counts, or a trace."),
    ],
    slo: Annotated[
        str | None,
        typer.Option(metavar="NAME=S,NAME=S", help="Limits in seconds, such as ttft_p99=0.5,tpot_p99=0.05."),
    ] = None,
    models: Annotated[str | None, typer.Option(metavar="A,B", help="Models; that of the scenario.")] = None,
    accelerators: Annotated[
        str | None, typer.Option(metavar="A,B", help="Accelerators to choose among; all GPUs that are known.")
    ] = None,
    engines: Annotated[str | None, typer.Option(metavar="A,B", help="Engine presets; that of the scenario.")] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=A,B",
            help="Further settings to choose among, such as precision.weights=auto,fp8; repeatable.",
        ),
    ] = None,
    disaggregate: Annotated[
        str | None,
        typer.Option(metavar="P:D,P:D", help="Also replicas that prefill and that decode, in ratios such as 1:1,1:2."),
    ] = None,
    rate: Annotated[float | None, typer.Option(metavar="R", help="Requests per second; as the workload says.")] = None,
    budget: Annotated[float | None, typer.Option(metavar="USD", help="Most USD per hour.")] = None,
    price: Annotated[
        str | None, typer.Option(metavar="NAME=USD,NAME=USD", help="Prices of accelerators, USD per hour.")
    ] = None,
    set_: Overrides = None,
    most_requests: Annotated[
        int, typer.Option(metavar="N", help="Requests of the longest run of a trial.")
    ] = DEFAULT_MOST_REQUESTS,
    sensitivity: Annotated[
        bool,
        typer.Option("--sensitivity", help="Tell which inputs would change the answer; takes as long again or more."),
    ] = False,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    jobs: Jobs = None,
    ray: Ray = None,
) -> None:
    """Tell how many of which GPU hold limits, set up how, at what cost.

    Of each model and accelerator the cheapest set-up is an answer. The folder holds a report to open in a browser, a
    scenario for each answer, ready for servetwin run, and the commands that launch it.
    """
    folder = folder_of(out, as_json, f"{workload.name.partition('.')[0]}-plan")
    if folder is not None:
        check_plan_folder(folder)
    question = ask(
        override(_document(workload), set_ or ()),
        workload.parent,
        slo=None if slo is None else objectives(slo),
        models=names(models),
        accelerators=names(accelerators),
        engines=names(engines),
        vary=varied_values(vary or ()),
        rate_per_s=rate,
        prices=_prices(price),
        budget_usd_per_h=budget,
        most_requests=most_requests,
        apart=_ratios(disaggregate),
    )
    shown = not (as_json or quiet)
    told_as = "{task.completed} simulations: {task.fields[what]}"
    with closing(runner_of(jobs, ray)) as runner, progress_bar(told_as, shown, what="") as update:
        told = None if update is None else lambda what, simulations: update(completed=simulations, what=what)
        answers = answers_of(make_plan(question, runner, told))
        asked = sensitivity and bool(answers.answers)
        effects = effects_of(answers, runner, most_requests, told) if asked else []
    if folder is not None:
        from dashboard.plan_report import render_plan  # plotly is slow to import, and only a page needs it

        write_plan(answers, folder, render_plan(answers, workload.name, effects), effects)
    if as_json:
        sys.stdout.write(plan_text(answers, effects))
    elif not quiet:
        print_answers(answers, console())
        print_effects(answers, effects, console())
        if folder is not None:
            say(f"Folder: {folder}\nReport: {folder / 'report.html'}")


def _document(path: Path) -> dict[str, Any]:
    """What a file says: a scenario, the workload section of one, or a trace."""
    if path.suffix not in _SCENARIO_SUFFIXES:
        return {"workload": {"trace": str(path.absolute())}}
    document = read_scenario(path)
    return document if "workload" in document else {"workload": document}


def _ratios(text: str | None) -> list[tuple[int, int]]:
    ratios = []
    for part in names(text):
        prefill, _, decode = part.partition(":")
        if not (prefill.isdecimal() and decode.isdecimal() and int(prefill) and int(decode)):
            raise InputError("--disaggregate", part, "replicas that prefill to replicas that decode, such as 1:2")
        ratios.append((int(prefill), int(decode)))
    return ratios


def _prices(text: str | None) -> Mapping[str, float]:
    prices = {}
    for part in names(text):
        name, _, value = part.partition("=")
        try:
            prices[name.strip()] = float(value)
        except ValueError:
            raise InputError("--price", part, "NAME=USD, such as h100-sxm=2.50") from None
    return prices
