"""The report of a comparison, from made-up rows whose wording is known."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from dashboard.comparison_report import render_comparison
from dashboard.comparison_wording import probability, relative, scale_of, seeds_in_words, short_names
from dashboard.figures.cost_against_latency import cost_against_latency
from dashboard.figures.differences import forest
from dashboard.figures.overlays import overlay
from experiments.comparison import Comparison, Curve, Row

HOSTILE = "<b>sjf</b>"


def row(variant, value, verdict, difference=None, low=None, high=None, metric="ttft_s.mean", unit="s", **others):
    relative_difference = None if difference is None else difference / (value - difference)
    return Row(
        metric, "TTFT mean", unit, variant, value, difference, low, high, relative_difference, verdict=verdict, **others
    )


ROWS = (
    row("fcfs", 0.5, "baseline"),
    row(HOSTILE, 0.4, "better", -0.1, -0.12, -0.08, p_value=0.0001, p_holm=0.0002),
    row("edf", 0.51, "unclear", 0.01, -0.01, 0.03, p_value=0.2, p_holm=0.2),
)
SAME = tuple(
    Row("rejected", "rejected", "requests", variant, 0.0, verdict=verdict, **none)
    for variant, verdict, none in (
        ("fcfs", "baseline", {}),
        (HOSTILE, "same", {"difference": 0.0, "low": 0.0, "high": 0.0, "p_holm": 1.0}),
        ("edf", "same", {"difference": 0.0, "low": 0.0, "high": 0.0, "p_holm": 1.0}),
    )
)


@pytest.fixture
def comparison():
    curve = Curve(np.array([0.1, 0.2, 5.0]), np.array([0.0, 0.5, 1.0]))
    return Comparison(
        scenario={"model": "m", "cluster": {"accelerator": "a"}},
        varied=("scheduler.ordering.name",),
        variants=("fcfs", HOSTILE, "edf"),
        baseline="fcfs",
        seeds=(3, 4, 5),
        method="A method.",
        rows=ROWS + SAME,
        runs=(),
        curves={"ttft_s": {"fcfs": curve, HOSTILE: curve, "edf": curve}, "e2e_s": {}},
        missing=(),
        looks=(3,),
        warnings=("A warning.",),
        notices=(),
    )


def test_the_page_has_the_table_the_figures_and_nothing_to_fetch(comparison):
    page = render_comparison(comparison, "a & b")
    body = page[: page.index("</main>")]
    assert "<h1>a &amp; b</h1>" in body
    assert "3 variants of scheduler.ordering.name · 3 seeds (3 to 5) · 9 runs · m on a" in body
    assert HOSTILE not in body
    assert "&lt;b&gt;sjf&lt;/b&gt;" in body
    cells = "<small>-100 (-20.0 %)</small><small>-120 … -80</small><small>p &lt;0.001</small>"
    assert f'<td>400{cells}<small class="met">▲ better</small></td>' in body
    assert "<td>0<small>the same</small></td>" in body
    assert "A method." in body
    assert "A warning." in body
    assert '<p class="empty">– no data</p>' in body
    plots = re.findall(r'data-plot="([^"]+)">(.*?)</script>', page)
    assert [name for name, _ in plots] == ["difference-ttft_s.mean", "distribution-ttft_s"]
    assert all(json.loads(document)["data"] for _, document in plots)
    own = page[: page.index("/**\n* plotly.js")] + page[page.rindex("<script>") :]
    assert not re.search(r"https?:|src=|<link|@import|url\(", own)
    assert page.count("plotly.js v") == 1
    assert render_comparison(comparison, "a & b") == page


def test_long_labels_have_letters_and_are_explained(comparison):
    long = "x" * 31
    rows = tuple(replace(row, variant=long) if row.variant == "edf" else row for row in comparison.rows)
    curves = {"ttft_s": {long: comparison.curves["ttft_s"]["edf"]}}
    page = render_comparison(replace(comparison, variants=("fcfs", HOSTILE, long), rows=rows, curves=curves), "t")
    assert f'<tr><th scope="row">variant C</th><td>{long}</td></tr>' in page
    assert '<th scope="col">variant A (baseline)</th>' in page


def test_a_forest_has_a_line_per_variant_around_nought():
    names = short_names(("fcfs", HOSTILE, "edf"))
    figure = forest(ROWS[1:], scale_of(ROWS), names, "fcfs")
    better, unclear = figure.data
    assert (better.x[0], better.error_x.array[0], better.error_x.arrayminus[0]) == pytest.approx((-100, 20, 20))
    assert (better.marker.symbol, unclear.marker.symbol) == ("circle", "circle-open")
    low, high = figure.layout.xaxis.range
    assert low < -120
    assert high > 30
    assert figure.layout.shapes[0].x0 == 0
    assert figure.layout.xaxis.title.text == "difference to fcfs (ms)"
    assert forest((ROWS[0],), scale_of(ROWS), names, "fcfs") is None


def test_curves_lie_one_over_the_other():
    short, long = (Curve(np.array([1.0, 2.0]) * factor, np.array([0.0, 1.0])) for factor in (1, 30))
    figure = overlay("e2e_s", {"b": short, "a": long}, {"a": "a", "b": "b"}, "a")
    assert [trace.name for trace in figure.data] == ["b", "a"]
    assert figure.layout.xaxis.type == "log"
    assert figure.data[1].x.tolist() == [30, 30, 60]  # in seconds, as suits the baseline
    assert figure.data[0].line.color != figure.data[1].line.color
    assert overlay("tpot_s", {"b": short}, {"b": "b"}, "a").data[0].x.tolist() == [1, 1, 2]
    assert overlay("e2e_s", {}, {}, "a") is None


def test_all_of_a_metric_is_in_one_unit():
    scale = scale_of(ROWS)
    assert (scale.unit, scale.value(0.4), scale.with_unit(0.4)) == ("ms", "400", "400 ms")
    assert scale_of([row("x", 2e-5, "baseline")]).unit == "µs"
    assert scale_of([row("x", 0.0, "baseline"), row("y", 3.0, "worse")]).unit == "s"
    assert scale_of([row("x", 12.0, "baseline", unit="requests/s")]).value(12.0) == "12.0"
    none = (scale.value(None), scale.difference(ROWS[0]), scale.interval(ROWS[0]), relative(ROWS[0]))
    assert none == ("–", "–", "", "–")


def test_a_difference_ends_where_the_digits_of_its_interval_do():
    base, other = row("x", 0.4, "baseline"), row("y", 0.412345, "unclear", 0.012345, -0.0263, 0.051)
    scale = scale_of([base, other])
    assert (scale.difference(other), scale.interval(other), relative(other)) == ("+12", "-26 … +51", "+3.1 %")
    sure = row("y", 0.412345, "worse", 0.012345, 0.012145, 0.012545)
    assert (scale.difference(sure), scale.interval(sure), relative(sure)) == ("+12.35", "+12.14 … +12.54", "+3.086 %")
    counts = scale_of([row("x", 3.0, "baseline", unit="preemptions")])
    assert (counts.with_unit(3.0), scale.difference(row("y", 1.0, "untested", 0.5))) == ("3.00", "+500")


def test_wording():
    assert [probability(value) for value in (None, 0.0004, 0.034, 1.0)] == ["–", "<0.001", "0.034", "1"]
    assert (seeds_in_words((4,)), seeds_in_words((4, 5))) == ("seed 4", "2 seeds (4 to 5)")
    assert relative(ROWS[2]) == "+2.0 %"


LABELS = [
    f"replicas={replicas}, accelerator={accelerator}" for replicas in (1, 2) for accelerator in ("h100-sxm", "h200-sxm")
]


def test_names_are_values_where_labels_are_long():
    assert list(short_names(LABELS).values()) == ["1, h100-sxm", "1, h200-sxm", "2, h100-sxm", "2, h200-sxm"]
    same = [f"ordering={'x' * 40}, {key}=1" for key in ("a", "b")]
    assert list(short_names(same).values()) == ["variant A", "variant B"]
    assert list(short_names([f"{'x' * 40}{number}" for number in range(28)]).values())[-2:] == [
        "variant AA",
        "variant AB",
    ]


@pytest.mark.parametrize("labels", [LABELS, ["1", "2", "10"], [f"{'x' * 40}{number}" for number in range(3)]])
def test_every_variant_has_a_line_of_its_own_under_its_name(labels):
    """A name that reads like a number would be drawn at that number, unless the axis is told to hold names."""
    names = short_names(labels)
    rows = [row(label, 1.0 + index, "worse", 0.1 * index, 0.0, 0.2) for index, label in enumerate(labels)]
    figure = forest(rows[1:], scale_of(rows), names, labels[0])
    drawn = json.loads(figure.to_json())
    assert drawn["layout"]["yaxis"]["type"] == "category"
    assert [trace["y"] for trace in drawn["data"]] == [[names[label]] for label in labels[1:]]
    assert sorted(drawn["layout"]["yaxis"]["categoryarray"]) == sorted(names[label] for label in labels[1:])
    assert drawn["layout"]["yaxis"]["range"] == [-0.6, len(labels) - 1 - 0.4]


def test_limits_stand_beside_the_curves_as_high_as_the_share_that_must_keep_them():
    curve = Curve(np.array([0.1, 0.2]), np.array([0.0, 1.0]))
    figure = overlay("ttft_s", {"a": curve}, {"a": "a"}, "a", {"p99": 0.5})
    assert (list(figure.data[-1].x), list(figure.data[-1].y)) == ([500, 500], [0, 0.99])
    assert figure.data[-1].name == "P99 ≤ 500 ms"


def test_costs_are_drawn_against_tails_where_they_differ(comparison):
    cost = {"metric": "usd_per_million_output_tokens", "unit": "USD"}
    costs = (row("fcfs", 1.0, "baseline", **cost), row(HOSTILE, 2.0, "worse", 1.0, 0.9, 1.1, **cost))
    tails = tuple(replace(each, metric="ttft_s.p99") for each in ROWS)
    figure = cost_against_latency(costs, tails, {"fcfs": "fcfs", HOSTILE: HOSTILE}, "fcfs")
    assert (list(figure.data[0].x), list(figure.data[0].y)) == ([500, 400], [1.0, 2.0])
    assert HOSTILE not in figure.data[0].text
    assert cost_against_latency(costs[:1], tails, {"fcfs": "fcfs"}, "fcfs") is None
    more = (row("edf", 1.0, "same", 0.0, 0.0, 0.0, **cost),)
    page = render_comparison(replace(comparison, rows=ROWS + tails + costs + more), "t")
    assert "What it costs" in page
    assert "What it costs" not in render_comparison(comparison, "t")
