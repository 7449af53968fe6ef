"""One run along its time: steps, KV memory, and the life of one request."""

from io import StringIO

import numpy as np
import streamlit as st

from dashboard.app.panels import choose_result, downloads, draw, head
from dashboard.figures.kv_occupancy import blocks_of, kv_occupancy
from dashboard.figures.steps import MOST_STEPS, kv_map, request_life, request_map, step_bars, steps_within
from dashboard.figures.time_bins import fine_edges, run_end_s
from dashboard.formatting import seconds
from simcore.core.result import Result
from simcore.metrics.step_bins import StepBins
from simcore.output.cluster_text import replica_count
from simcore.output.timeline import write_timeline

_SHOWN_SHARE = 0.05
"""Of the run, at first: bars of a whole run are too narrow to see."""


def _timeline_text(result: Result) -> str:
    text = StringIO()
    write_timeline(result, text)
    return text.getvalue()


def _steps(result: Result, end_s: float) -> None:
    st.subheader("Steps")
    from_s, to_s = st.slider(
        "From and to (s)", 0.0, end_s, (0.0, end_s * _SHOWN_SHARE), step=end_s / 1000, format="%.2f", key="steps_within"
    )
    shown = len(steps_within(result.steps, from_s, to_s)["start_s"])
    words = "Bars are runs of like steps."
    if shown == MOST_STEPS:
        words = f"Only the first {MOST_STEPS:,} rows are drawn; choose a shorter stretch."
    draw(step_bars(result.steps, from_s, to_s), "steps", words)


def _memory(result: Result, end_s: float) -> None:
    st.subheader("KV blocks")
    edges_s, blocks = fine_edges(end_s), blocks_of(result.summary)
    bins = StepBins(result.steps, replica_count(result.scenario["cluster"]), edges_s)
    draw(kv_occupancy(result.steps, bins, edges_s, blocks), "kv", "Share of blocks in use; marks are preemptions.")
    draw(kv_map(result.steps, bins, edges_s, blocks), "kv_map", "Each replica by itself.")


def _request(result: Result) -> None:
    st.subheader("One request")
    requests = result.requests
    chosen = draw(request_map(requests), "requests", "Choose one by a click, or by its number.", on_select="rerun")
    points = [] if chosen is None else chosen["selection"]["points"]
    number = int(points[0]["customdata"][0]) if points else int(requests["request_id"][0])
    number = int(st.number_input("Request", value=number, step=1, key=f"request.{number}"))
    rows = np.flatnonzero(requests["request_id"] == number)
    if not len(rows):
        st.error(f"request is {number}, expected a number of one of the {len(requests['request_id']):,} requests.")
        return
    request = {name: values[rows[0]].item() for name, values in requests.items()}
    draw(request_life(request), "life")
    st.caption(
        f"Request {number}: {request['state']}, {request['prompt_tokens']:,} prompt and {request['output_tokens']:,} "
        f"output tokens, replica {request['replica']}, preempted {request['preemptions']:,} times; TTFT "
        f"{seconds(_known(request['ttft_s']))}, TPOT {seconds(_known(request['tpot_s']))}, E2E "
        f"{seconds(_known(request['e2e_s']))}."
    )


def _known(value_s: float) -> float | None:
    return value_s if np.isfinite(value_s) else None


head("Timeline", "What the replicas did when, and what became of a request.")
found = choose_result("timeline_run")
if found is not None:
    name, result = found
    end_s = run_end_s(result)
    if not end_s:
        st.info("No time passed in this run.")
    else:
        _steps(result, end_s)
        _memory(result, end_s)
        _request(result)
        files = [("Timeline for Perfetto", "timeline.json", lambda: _timeline_text(result), "application/json")]
        downloads(files, "timeline")
