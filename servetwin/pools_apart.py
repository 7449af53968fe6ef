"""At which lengths pools that hand requests over carry more than mixed ones, as ``servetwin explain`` says it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from servetwin.console import plain_table
from simcore.build.disaggregation_estimate import Comparison, compare_pools, usual_lengths
from simcore.build.simulation import Simulation

NOTE = "Estimates of means without a simulated queue: run both to be sure."


def pools_apart(simulation: Simulation) -> list[Comparison]:
    """The comparison at the workload's lengths and others; nothing where no pool hands over."""
    if not any(pool.role == "prefill" for pool in simulation.pools):
        return []
    return compare_pools(simulation, usual_lengths(simulation))


def comparison_table(found: Sequence[Comparison]) -> Table:
    """One row for each pair of lengths."""
    table = plain_table("prompt", "output", "apart (req/s)", "bound by", "mixed (req/s)", "bound by", "apart / mixed")
    for row in found:
        ratio = row.apart.requests_per_s / row.mixed.requests_per_s if row.mixed.requests_per_s else None
        table.add_row(
            f"{row.prompt_tokens:,}",
            f"{row.output_tokens:,}",
            f"{row.apart.requests_per_s:,.1f}",
            row.apart.bound_by,
            f"{row.mixed.requests_per_s:,.1f}",
            row.mixed.bound_by,
            "-" if ratio is None else f"{ratio:.2f}",
        )
    table.caption = NOTE
    return table


def comparison_document(found: Sequence[Comparison]) -> list[dict[str, Any]]:
    """The same for JSON."""
    return [asdict(row) for row in found]
