"""A hundred requests decode side by side for 4,000 tokens, in one row of steps: memory fills, and steps grow longer."""

import io
import json

import numpy as np
import pytest

import servetwin
from dashboard.figures.kv_occupancy import kv_occupancy
from dashboard.figures.throughput import output_tokens_per_s
from dashboard.figures.time_bins import fine_edges
from simcore.metrics.step_bins import StepBins
from simcore.output.timeline import write_timeline

REACHED_BLOCKS = 25_443


@pytest.fixture(scope="module")
def result():
    return servetwin.simulate(
        {
            "model": "llama-3.1-8b",
            "cluster": {"accelerator": "h100-sxm"},
            "workload": {
                "requests": 100,
                "arrivals": {"name": "constant", "rate_per_s": 100_000},
                "prompt_tokens": {"name": "fixed", "tokens": 100},
                "output_tokens": {"name": "fixed", "tokens": 4000},
            },
        }
    )


def test_the_timeline_shows_how_full_memory_gets(result):
    assert result.steps["used_blocks_at_end"].max() == pytest.approx(REACHED_BLOCKS, rel=0.02)
    stream = io.StringIO()
    write_timeline(result, stream)
    events = json.loads(stream.getvalue())["traceEvents"]
    drawn = [event["args"]["used"] for event in events if event["name"] == "KV blocks"]
    assert max(drawn) == result.steps["used_blocks_at_end"].max()
    assert len(set(drawn)) > 50


def test_figures_show_it_too(result):
    edges_s = fine_edges(float(result.steps["end_s"].max()))
    bins = StepBins(result.steps, 1, edges_s)
    blocks = result.summary["kv"]["blocks_per_replica"]
    in_use = kv_occupancy(result.steps, bins, edges_s, blocks).data[0].y[:-1]
    assert in_use.max() * blocks == pytest.approx(REACHED_BLOCKS, rel=0.02)
    assert (np.diff(in_use[1:-1]) > 0).all()
    rates = output_tokens_per_s(result.requests, result.steps, bins, edges_s)
    assert rates.sum() * edges_s[1] == pytest.approx(400_000)
    assert (np.diff(rates[2:-2]) < 0).all()
    assert rates[2] > 1.1 * rates[-3]


def test_the_first_and_last_step_of_a_row_are_known(result):
    row = int(result.steps["steps"].argmax())
    first_s, last_s = result.steps["first_step_s"][row], result.steps["last_step_s"][row]
    span_s = result.steps["end_s"][row] - result.steps["start_s"][row]
    assert first_s < last_s
    assert result.steps["steps"][row] * (first_s + last_s) / 2 == pytest.approx(span_s, rel=0.01)
