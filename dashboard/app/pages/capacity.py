"""The load of a setup raised in steps, until its limits do not hold any more."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import streamlit as st

from dashboard.app.panels import choose_setup, draw, head, table, task
from dashboard.app.session import desk
from dashboard.figures.capacity import against_rate
from dashboard.formatting import DASH, number, seconds, share
from dashboard.what_if.load_sweep import largest_rates, rates_between, sweep_items
from dashboard.what_if.tasks import Point, sweep
from experiments.sweep.rates import holds, rate_of
from simcore.core.errors import ServetwinError
from simcore.metrics.registry import figures

_POINTS = 8
_REPLICAS = (1, 2, 3, 4, 6, 8)
_NAMES = {figure.name: figure for figure in figures()}


def _percentiles(name: str) -> dict[str, Callable[[Mapping[str, Any]], float | None]]:
    return {
        "P99": lambda summary: summary["metrics"][name]["p99"],
        "P50": lambda summary: summary["metrics"][name]["p50"],
    }


def _results(points: list[Point], limits: dict[str, float]) -> None:
    best = largest_rates(points)
    for gpus, rate in best.items():
        words = f"{gpus} GPU{'s' if gpus > 1 else ''}"
        if not limits:
            st.info(f"{words}: no limit is stated, so none can be held; state one on the page What if.")
        elif rate is None:
            st.error(f"{words}: the limits do not hold even at the least rate.")
        else:
            st.success(f"{words}: the limits hold up to {number(rate)}, the largest of these rates.")
    plain = [(point.rate_per_s, point.gpus, point.summary) for point in points]
    left, right = st.columns(2, gap="large")
    with left:
        draw(
            against_rate(plain, "TTFT (s)", _percentiles("ttft_s"), limits.get("ttft_s")),
            "ttft",
            "Time to first token.",
        )
        rates = {
            "goodput": _NAMES["goodput_requests_per_s"].of_summary,
            "offered": _NAMES["offered_requests_per_s"].of_summary,
        }
        draw(against_rate(plain, "requests/s", rates), "goodput", "Requests that met every limit, and all that came.")
    with right:
        draw(
            against_rate(plain, "TPOT (s)", _percentiles("tpot_s"), limits.get("tpot_s")),
            "tpot",
            "Time per output token.",
        )
        cost = {"": _NAMES["usd_per_million_output_tokens"].of_summary}
        draw(against_rate(plain, "USD per million output tokens", cost), "cost", "Cost of output tokens.")
    rows = sorted(points, key=lambda point: (point.gpus, point.rate_per_s))
    columns = {
        "GPUs": [str(point.gpus) for point in rows],
        "Rate": [number(point.rate_per_s) for point in rows],
        "P99 TTFT": [seconds(point.summary["metrics"]["ttft_s"]["p99"]) for point in rows],
        "P99 TPOT": [seconds(point.summary["metrics"]["tpot_s"]["p99"]) for point in rows],
        "Goodput (requests/s)": [number(rates["goodput"](point.summary)) for point in rows],
        "Kept all limits": [share(_NAMES["slo_attainment"].of_summary(point.summary)) for point in rows],
        "USD per 1M output": [number(cost[""](point.summary)) for point in rows],
        "Limits": [DASH if not limits else "hold" if holds(point.summary) else "missed" for point in rows],
    }
    table(columns, list(columns)[:-1])
    st.caption(
        "Each row is one run of the setup's requests. The end of a run of few requests flatters it: more requests show "
        "a queue that grows."
    )


head("Capacity", "The same requests at rising rates: up to where do the limits hold, and what does it cost?")
found = choose_setup("capacity_setup")
if found is not None:
    side, checked = found
    scenario = checked.simulation.scenario
    try:
        stated = rate_of(scenario.document())
        least_column, most_column, count_column, replicas_column = st.columns(4)
        least = least_column.number_input("Least rate (requests/s, or times a trace's)", value=stated / 4, format="%g")
        most = most_column.number_input("Greatest rate", value=stated * 4, format="%g")
        count = int(count_column.number_input("Rates", value=_POINTS, step=1))
        own = scenario.cluster.replicas
        replicas = replicas_column.multiselect("Replicas", sorted({*_REPLICAS, own}), [own])
        rates = rates_between(least, most, count)
    except ServetwinError as error:
        st.error(str(error))
    else:
        items = sweep_items(checked.document, rates, sorted(replicas), scenario.cluster.devices_per_replica)
        fingerprint = sha256(repr((checked.fingerprint, rates, sorted(replicas))).encode()).hexdigest()
        if st.button(f"Simulate {len(items)} runs", type="primary", disabled=not items):
            desk().ask("capacity", fingerprint, sweep, items)
        points = task("capacity", fingerprint, len(items), "runs are done")
        if points is not None:
            slo = scenario.slo.model_dump()
            _results(points, {name: slo[name]["p99"] for name in ("ttft_s", "tpot_s") if "p99" in slo[name]})
