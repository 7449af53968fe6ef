"""Several policies on the same requests, with the intervals of ``servetwin compare``."""

from hashlib import sha256
from pathlib import Path

import streamlit as st

from dashboard.app.panels import choose_setup, downloads, draw, head, table, task
from dashboard.app.session import desk, folder, pair, traces
from dashboard.comparison_report import render_comparison
from dashboard.comparison_wording import VERDICT_WORDS, probability, relative, scale_of, short_names
from dashboard.figures.differences import forest
from dashboard.figures.overlays import overlay
from dashboard.what_if.policy_plans import KINDS, names_of, policy_plan, tenant_figures
from dashboard.what_if.tasks import compare
from dashboard.what_if.trust import trusted
from experiments.comparison import Comparison, evaluate
from experiments.comparison.plan import Plan
from simcore.core.errors import ServetwinError
from simcore.metrics.registry import latency

_FIRST = {"Ordering": ["fcfs", "sjf"], "Batching": ["chunked-prefill", "prefill-first"]}
_MARKS = {"better": "▲ ", "worse": "▼ "}


def _rows(comparison: Comparison) -> None:
    names = ("Metric", "Unit", "Policy", "Mean", "Difference", "95 % interval", "p", "Verdict")
    columns: dict[str, list[str]] = {name: [] for name in names}
    for rows in comparison.by_metric():
        scale = scale_of(rows)
        for row in rows:
            values = (
                row.title,
                scale.unit,
                row.variant,
                scale.value(row.value),
                "" if row.difference is None else f"{scale.difference(row)} ({relative(row)})",
                scale.interval(row),
                "" if row.p_holm is None else probability(row.p_holm),
                _MARKS.get(row.verdict, "") + VERDICT_WORDS[row.verdict],
            )
            for name, value in zip(names, values, strict=True):
                columns[name].append(value)
    table(columns, ("Mean", "Difference", "95 % interval", "p"))
    st.caption(comparison.method)


def _comparison(comparison: Comparison, plan: Plan, place: Path) -> None:
    for warning in comparison.warnings:
        st.warning(warning)
    for notice in comparison.notices:
        st.caption(f"Notice: {notice}")
    st.subheader(f"Differences to {comparison.baseline}")
    short = short_names(comparison.variants)
    shown = [rows for rows in comparison.by_metric() if any(row.difference for row in rows)]
    for column, rows in zip(st.columns(2) * len(shown), shown, strict=False):
        with column:
            others = [row for row in rows if row.variant != comparison.baseline]
            draw(forest(others, scale_of(rows), short, comparison.baseline), f"forest-{rows[0].metric}", rows[0].title)
    _rows(comparison)
    st.subheader("Distributions")
    columns = st.columns(max(len(comparison.curves), 1))
    for column, (name, curves) in zip(columns, comparison.curves.items(), strict=False):
        with column:
            draw(overlay(name, curves, short, comparison.baseline), f"cdf-{name}", latency(name).title)
    tenants = tenant_figures(plan, place)
    if tenants["Tenant"]:
        st.subheader("Tenants")
        table(tenants, list(tenants)[2:])
    page = ("Report (HTML)", "policies.html", lambda: render_comparison(comparison, "Policies"), "text/html")
    downloads([page], "policies")


head("Policies", "Several policies serve the same requests. The first is what the others are held against.")
found = choose_setup("policies_setup")
if found is not None:
    kind_column, names_column, seeds_column = st.columns([1, 3, 1])
    kind = str(kind_column.selectbox("Kind", list(KINDS), key="policy_kind"))
    known = names_of(kind)
    first = [name for name in _FIRST.get(kind, known[:2]) if name in known]
    chosen = names_column.multiselect("Policies", known, first, key=f"policies.{kind}")
    seeds = seeds_column.number_input(
        "Seeds", value=None, step=1, help="Runs of each; empty for as few as can tell a difference.", key="policy_seeds"
    )
    try:
        document = trusted(pair().document(found[0]), traces())
        planned = document, folder(), kind, chosen, None if seeds is None else int(seeds)
        plan = policy_plan(*planned)
    except ServetwinError as error:
        st.error(str(error))
    else:
        fingerprint = sha256("".join(run.fingerprint + run.name for run in plan.runs).encode()).hexdigest()
        place = folder() / f"compare-{fingerprint[:16]}"
        if st.button(f"Simulate {len(plan.runs)} runs", type="primary"):
            desk().ask("policies", fingerprint, compare, (planned, str(place)))
        if task("policies", fingerprint, len(plan.runs), "runs are done"):
            _comparison(evaluate(plan, place), plan, place)
