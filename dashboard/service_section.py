"""The service over time in the report: objectives, error budget, and replicas that come and go."""

from typing import Any

from dashboard.figures.regimes import service_over_time
from dashboard.formatting import number, seconds, share
from dashboard.markup import facts, figure_of, section
from dashboard.page import figure_block
from simcore.core.result import Result

_CAPTION = (
    "Means over a sixtieth of the window of arrivals. The error budget burns at rate 1 where as many requests miss an "
    "objective as may. Green: up to 1. Yellow: up to 6. Red: above."
)


def service_section(result: Result) -> str:
    """How the error budget went, and how replicas came and went; nothing without objectives and scaling."""
    summary, service, scaling = result.summary, result.summary.get("service"), result.summary.get("scaling")
    if service is None or (not summary["slo"] and scaling is None):  # runs of earlier versions have no such section
        return ""
    rows = [("Replicas, mean", number(service["mean_replicas"])), *_budget(service)]
    if scaling is not None:
        rows += _scaling(scaling, summary["cost"])
    drawn = result.service and len(result.service["start_s"])
    figure = figure_block("regimes", service_over_time(result.service), "Regimes", _CAPTION) if drawn else ""
    return section("Service", f'<div class="panel">{facts(rows)}</div><div class="stack">{figure}</div>')


def _budget(service: dict[str, Any]) -> list[tuple[str, str]]:
    regimes = [(f"Time in {name}", figure_of(of, share)) for name, of in service["regime_shares"].items()]
    return [("Error budget spent", figure_of(service["error_budget_spent"], share)), *regimes]


def _scaling(scaling: dict[str, Any], cost: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("Replicas, from", number(scaling["least_replicas"])),
        ("Replicas, to", number(scaling["most_replicas"])),
        ("Cold starts", number(scaling["starts"])),
        ("Cold start, mean", figure_of(scaling["start_s"]["mean"], seconds)),
        ("Wakes", number(scaling["wakes"])),
        *((f"Replica-seconds {phase}", number(of)) for phase, of in scaling["instance_s"].items() if of),
        ("Instances taken back", number(scaling["reclaimed"])),
        ("Requests interrupted", number(scaling["interrupted_requests"])),
        ("Cost, USD", number(cost["usd"])),
        ("Cost of a successful request, USD", number(cost["usd_per_good_request"])),
    ]
