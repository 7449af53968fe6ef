"""The summary of a run: what ``summary.json`` holds."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from math import inf
from time import perf_counter
from typing import Any

import numpy as np

from simcore.core.result import Columns
from simcore.core.token_gaps import CountedGaps
from simcore.metrics.energy import energy
from simcore.metrics.error_budget import service_figures, service_table
from simcore.metrics.fairness import fairness
from simcore.metrics.faults import fault_figures
from simcore.metrics.fleets import fleet_figures, fleet_table, mean_replicas
from simcore.metrics.gateway import gateway_figures
from simcore.metrics.groups import group_figures
from simcore.metrics.handovers import handover_figures
from simcore.metrics.kv_memory import kv_figures
from simcore.metrics.measured import MeasuredRun
from simcore.metrics.migrations import migration_figures
from simcore.metrics.objectives import kept_all, missed_any, objectives
from simcore.metrics.pools import pool_figures
from simcore.metrics.pricing import pricing_figures, pricing_warnings
from simcore.metrics.registry import figures, latencies
from simcore.metrics.run_facts import RunFacts
from simcore.metrics.statistics import Statistics, of_gaps, of_values
from simcore.metrics.throughput import mean_queue, throughput
from simcore.metrics.transfers import link_figures, swap_figures
from simcore.metrics.updates import update_figures
from simcore.metrics.utilisation import utilisation

SCHEMA_VERSION = 2
_WINDOW = (
    "from the end of the warm-up to the end of the run, {}; latencies of the requests that arrived in it and have them "
    "by its end, gaps, tokens and finished requests that came in it; offered and served rate, goodput and cost of "
    "tokens are of its part up to the last arrival; counts, fairness, KV memory, preemptions, utilisation and the cost "
    "of the run are of the whole run"
)
_DRAINED = "its drain included"
_CUT_OFF = "which was cut off before all requests had drained"


def summarise(
    facts: RunFacts,
    requests: Columns,
    steps: Columns,
    gaps: Sequence[Sequence[CountedGaps]],
    all_gaps: CountedGaps,
    started: float,
) -> tuple[dict[str, Any], Columns, Columns]:
    """The summary of a run, and the tables ``fleet`` and ``service`` of its result.

    It began at ``started`` on the wall clock (``time.perf_counter``). ``gaps`` are the token gaps of each
    replica as chunks in order of time, ``all_gaps`` the same merged.
    """
    scenario, end_s = facts.scenario, _end_s(facts, requests, steps)
    start_s = scenario.measurement.warmup_s
    run = MeasuredRun(
        scenario=scenario,
        requests=requests,
        steps=steps,
        start_s=start_s,
        end_s=max(end_s, start_s),
        good=kept_all(requests, scenario),
        bad=missed_any(requests, scenario, end_s),
        emitted_tokens=facts.first_tokens + int(all_gaps.counts.sum()),
        spent_usd=facts.usd,
    )
    itl = of_gaps(gaps, all_gaps, _requests_with_gaps(requests, start_s))
    pricing = pricing_figures(facts, steps)
    summary: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "counts": _counts(requests),
        "window": _window(run, facts.cut_off),
        "metrics": _metrics(run, itl),
        "throughput": throughput(run),
        "slo": objectives(requests, scenario, run.arrived, end_s),
        "fairness": fairness(requests, end_s, run.good, run.bad),
        "kv": kv_figures(facts, requests, steps, end_s),
        "preemptions": {
            "total": int(steps["preempted_requests"].sum()),
            "requests": int((requests["preemptions"] > 0).sum()),
            **swap_figures(facts.offloadings),
        },
        "links": link_figures(facts.offloadings, facts.transfers, end_s),
        "utilisation": utilisation(facts, requests, steps, end_s),
        "cost": {
            "usd_per_h": facts.usd_per_h(end_s),
            "usd": facts.usd(0.0, end_s),
        },
        "pricing": pricing,
    }
    _add_figures(summary, run)
    if drawn := energy(facts, end_s, summary["throughput"]["output_tokens_per_s"]):
        summary["energy"] = drawn
    if pools := pool_figures(facts, requests, steps, end_s):
        summary["pools"] = pools
    if facts.handovers is not None:
        summary["handover"] = handover_figures(requests, facts.handovers, start_s)
    if facts.migrations is not None:
        summary["migration"] = migration_figures(facts.migrations)
    if facts.faults is not None:
        summary["faults"] = fault_figures(facts.faults, end_s)
    if scenario.cluster.assignment is not None:
        until_s = min((update.at_s for update in scenario.updates or ()), default=inf)
        summary["groups"] = group_figures(facts, requests, run.good, run.bad, until_s)
    if facts.adapter_loads is not None:
        summary["adapters"] = {"loads": facts.adapter_loads}
    if facts.updates:
        summary["updates"] = update_figures(facts.updates)
    if gateway := gateway_figures(facts.gateway, end_s):
        summary["gateway"] = gateway
    if not facts.fixed:
        summary["scaling"] = fleet_figures(facts, end_s)
    fleet, service = fleet_table(facts.pools, end_s), service_table(facts, run)
    summary["service"] = service_figures(service, run, mean_replicas(fleet, end_s))
    summary["cost"]["price_source"] = facts.price_source
    summary |= {"warnings": [*_warnings(run, summary), *facts.warnings], "notices": list(facts.notices)}
    wall_s = perf_counter() - started
    summary["run"] = {
        "wall_s": wall_s,
        "simulated_s": end_s,
        "requests_per_wall_s": len(requests["request_id"]) / wall_s,
        "phases_wall_s": {"simulate": facts.simulation_wall_s, "summarise": wall_s - facts.simulation_wall_s},
        "seed": scenario.seed,
        "versions": {
            "servetwin": version("servetwin"),
            "python": platform.python_version(),
            "simpy": version("simpy"),
            "numpy": version("numpy"),
        },
    }
    return summary, fleet, service


def _window(run: MeasuredRun, cut_off: bool) -> dict[str, Any]:
    return {
        "start_s": run.start_s,
        "end_s": run.end_s,
        "measured_s": run.length_s,
        "arrivals_end_s": run.arrivals_end_s,
        "requests": int(((run.requests["state"] == "finished") & run.arrived).sum()),
        "warmup_excluded": run.start_s > 0,
        "drain_excluded": cut_off,
        "definition": _WINDOW.format(_CUT_OFF if cut_off else _DRAINED),
    }


def _metrics(run: MeasuredRun, itl: Statistics) -> dict[str, Any]:
    """Statistics of every latency; that without values of requests is of gaps between tokens."""
    arrived = run.arrived
    return {
        latency.name: itl
        if latency.of_requests is None
        else of_values(np.asarray(latency.of_requests(run.requests)[arrived], dtype=np.float64))
        for latency in latencies()
    }


def _add_figures(summary: dict[str, Any], run: MeasuredRun) -> None:
    """Put the figures that say how they are computed where they belong."""
    for figure in figures():
        if figure.of_run is not None:
            *sections, key = figure.place.split(".")
            section = summary
            for name in sections:
                section = section.setdefault(name, {})
            section[key] = figure.of_run(run) if run.length_s else None


def _end_s(facts: RunFacts, requests: Columns, steps: Columns) -> float:
    if facts.scenario.measurement.end_s is not None:
        return facts.scenario.measurement.end_s
    last_step_s = float(steps["end_s"].max()) if len(steps["end_s"]) else 0.0
    return max(last_step_s, float(requests["arrival_s"].max()) if len(requests["arrival_s"]) else 0.0)


def _counts(requests: Columns) -> dict[str, Any]:
    states, reasons = requests["state"], requests["reason"]
    by_reason = {str(reason): int((reasons == reason).sum()) for reason in np.unique(reasons) if reason}
    return {
        "arrived": len(states),
        **{state: int((states == state).sum()) for state in ("finished", "rejected", "unfinished")},
        "rejected_by_reason": by_reason,
    }


def _requests_with_gaps(requests: Columns, start_s: float) -> int:
    """Requests that got two tokens or more and were not done when the window began."""
    return int(((requests["output_tokens"] >= 2) & ~(requests["end_s"] <= start_s)).sum())


def _warnings(run: MeasuredRun, summary: dict[str, Any]) -> list[str]:
    counts, rates = summary["counts"], summary["throughput"]
    warnings = pricing_warnings(summary["pricing"])
    finished = run.requests["state"] == "finished"
    if run.start_s and finished.any() and not (finished & run.arrived).any():
        warnings.append(f"No finished request arrived after the warm-up of {run.start_s:g} s, so E2E has no figures.")
    if rates["keeps_up"] is False:
        queue = mean_queue(run, np.array([run.start_s + 0.8 * run.arrivals_s, run.arrivals_end_s]))[0]
        warnings.append(
            f"The service cannot keep up: of {rates['offered_requests_per_s']:.4g} requests/s it served "
            f"{rates['served_requests_per_s']:.4g}, and the queue grew throughout, to {queue:,.0f} requests. Latencies "
            "depend on how long the run is."
        )
    if counts["unfinished"]:
        warnings.append(
            f"{counts['unfinished']} requests were unfinished when the run was cut off; TPOT and E2E are of finished "
            "ones, TTFT of all that got a token."
        )
    if counts["rejected"]:
        warnings.append(
            f"{counts['rejected']} of {counts['arrived']} requests were rejected; TPOT and E2E are of finished ones."
        )
    return warnings
