"""``servetwin explain``: where the time of a step goes, operator by operator."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from dashboard.formatting import seconds, share
from servetwin.api import prepare
from servetwin.console import console, plain_table, print_table
from servetwin.options import AsJson, Overrides, Pool, Scenario
from servetwin.pools_apart import comparison_document, comparison_table, pools_apart
from simcore.build.explanation import Explanation, explain_step, usual_shapes
from simcore.core.errors import InputError
from simcore.core.outputs import check_file, is_page, replace_text
from simcore.cost.breakdown import StepShape


def explain(
    scenario: Scenario,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            "--shape",
            metavar="BATCH",
            help="A batch: 64x2048 (64 decodes of 2048 tokens), 512@1024 (a chunk of 512 after 1024), 64x2048+512.",
        ),
    ] = None,
    set_: Overrides = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write an HTML page with rooflines.")
    ] = None,
    pool: Pool = None,
    as_json: AsJson = False,
) -> None:
    """Show where a step's time goes.

    Without --shape: one decode, as many as typically run at once, a prompt, and decodes beside a chunk. Of pools that
    hand requests over, at which lengths they carry more than mixed ones.
    """
    if out is not None:
        check_file(out, is_page)
    simulation = prepare(scenario, set_ or ())
    compared = pools_apart(simulation) if pool is None and not shape else []
    simulation = simulation.of_pool(simulation.pools[0].name if pool is None else pool)
    shapes = [StepShape.parse(text) for text in shape] if shape else usual_shapes(simulation)
    for asked in shapes:
        longest = max([asked.context_tokens, *(sum(chunk) for chunk in asked.chunks)])
        if longest > simulation.max_context_tokens:
            raise InputError("--shape", str(asked), f"requests of at most {simulation.max_context_tokens} tokens")
    explanations = [explain_step(simulation, asked) for asked in shapes]
    if out is not None:
        from dashboard.explain_report import render_explanation  # plotly is slow to import, and only a page needs it

        page = render_explanation(explanations, str(scenario))
        replace_text(out, page, is_page)
    if as_json:
        steps = [_document(explanation) for explanation in explanations]
        told = {"steps": steps, "pools_apart": comparison_document(compared)} if compared else steps
        typer.echo(json.dumps(told, indent=2))
        return
    console().print(escape(explanations[0].kernels))
    if explanations[0].fusion:
        console().print(escape(explanations[0].fusion))
    for explanation in explanations:
        print_explanation(explanation, console())
    if compared:
        print_table(comparison_table(compared), console())


def print_explanation(explanation: Explanation, output: Console) -> None:
    """Print a step's operators, dearest first."""
    step = explanation
    output.print(
        f"[bold]{escape(str(step.shape))}[/]: {seconds(step.seconds)}, MFU {share(step.mfu)}, MBU {share(step.mbu)}"
        f" ({escape(step.model)} on {escape(step.devices)})"
    )
    if step.stage_s:
        times = ", ".join(map(seconds, step.stage_s))
        output.print(f"stages take {times}: with all of them busy a batch leaves every {seconds(max(step.stage_s))}")
    table = plain_table("operator", "kernels", "time", "share", "MFU", "MBU", "source", "held-out error")
    for operator in sorted(step.operators, key=lambda time: -time.seconds):
        kernel = operator.flops or operator.bytes
        table.add_row(
            operator.name,
            f"{operator.count}",
            seconds(operator.seconds),
            share(operator.seconds / step.seconds),
            share(step.mfu_of(operator)) if kernel else "–",
            share(step.mbu_of(operator)) if kernel else "–",
            operator.source + (", extrapolated" if operator.extrapolated else ""),
            "–" if operator.errors is None else share(operator.errors.median),
        )
    print_table(table, output)


def _document(step: Explanation) -> dict[str, Any]:
    operators = [
        asdict(operator) | {"mfu": step.mfu_of(operator), "mbu": step.mbu_of(operator)} for operator in step.operators
    ]
    return {
        "shape": str(step.shape),
        "seconds": step.seconds,
        "mfu": step.mfu,
        "mbu": step.mbu,
        "model": step.model,
        "accelerator": step.accelerator,
        "tensor_parallel": step.ranks,
        "devices": step.devices,
        "profile": step.profile,
        "fallback_profiles": step.fallback_profiles,
        "unmeasured": step.unmeasured,
        "fused": list(step.fused),
        "stage_seconds": list(step.stage_s),
        "operators": operators,
    }
