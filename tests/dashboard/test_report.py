import base64
import json
import re

import numpy as np
import pytest

from dashboard.report import render_report

HOSTILE = "<script>alert(1)</script>"


def without_plotly(page):
    """The page up to its scripts, which is what the run had a part in."""
    return page[: page.index("</main>")]


def plots(page):
    found = re.findall(r'<script type="application/json" data-plot="(\w+)">(.*?)</script>', page)
    return {name: json.loads(document) for name, document in found}


@pytest.fixture(scope="module")
def page(two_replicas):
    return render_report(two_replicas, "two replicas")


def test_the_figures_are_all_there(page):
    assert list(plots(page)) == [
        "ttft_s",
        "tpot_s",
        "itl_s",
        "e2e_s",
        "load",
        "replicas",
        "kv",
        "throughput",
        "ttft",
        "lengths",
    ]
    for name in plots(page):
        assert f'<div id="{name}"' in page


def test_every_axis_has_a_title(page):
    for name, plot in plots(page).items():
        panels = sum(key.startswith("yaxis") for key in plot["layout"])
        titles = [axis["title"].get("text") for key, axis in plot["layout"].items() if re.match("[xy]axis", key)]
        assert sum(map(bool, titles)) == panels + 1, name


def test_nothing_is_fetched(page):
    own = page[: page.index("/**\n* plotly.js")] + page[page.rindex("<script>") :]
    assert "default-src 'none'" in own
    assert not re.search(r"https?:|src=|<link|@import|url\(", own)
    assert "showSendToCloud: false" in own


def test_the_same_result_gives_the_same_bytes(two_replicas, page):
    assert render_report(two_replicas, "two replicas") == page


def test_wall_clock_times_are_left_out(page):
    # The run took 0.12345 s, at 4321 requests/s.
    assert re.findall(r"0\.123|123 ms|4,?321", without_plotly(page)) == []


def test_counts_are_shown_with_their_reasons(page):
    assert "<dt>Arrived</dt><dd>4</dd>" in page
    for state, count in (("finished", 2), ("rejected", 1), ("unfinished", 1)):
        assert f'<span class="dot {state}"></span>{state.capitalize()}</dt><dd>{count}</dd>' in page
    assert "1: longer than &lt;the&gt; context" in page
    assert "1 rejected and 1 unfinished requests are in no percentile" in page


def test_headline_figures(page):
    assert '<span class="label">TTFT P50</span><b>1.00 <span>s</span></b>' in page
    assert '<span class="label">Finished requests</span><b>0.200 <span>requests/s</span></b>' in page
    assert 'Goodput</span><b><span class="none">– <small>no SLO stated</small>' in page


def test_intervals_objectives_and_messages(make_result, two_replicas):
    summary = json.loads(json.dumps(two_replicas.summary))
    summary["metrics"]["ttft_s"]["ci"]["p50"] = [0.5, 1.5]
    summary["throughput"]["goodput_requests_per_s"] = 0.1
    summary["throughput"]["ci"] = {"level": 0.95, "method": "batch means", "requests_per_s": [0.15, 0.25]}
    limit = {"limit_s": 1.0, "percentile": "p99"}
    summary["slo"] = {
        "ttft_s.p99": {**limit, "share_within": 0.5, "met": False},
        "tpot_s.p99": {**limit, "share_within": 1.0, "met": True},
        "e2e_s.p99": {**limit, "share_within": None, "met": None},
    }
    summary["warnings"], summary["notices"] = [HOSTILE], ["a notice"]
    page = without_plotly(render_report(make_result([], [], **summary), HOSTILE))
    assert "<small>500 ms … 1.50 s</small>" in page
    assert "<b>0.200 <span>requests/s</span></b><small>0.150 … 0.250</small>" in page
    assert "Goodput</span><b>0.100 <span>requests/s</span></b>" in page
    assert "Intervals by</th><td>batch means</td>" in page
    assert 'P99 TTFT ≤ 1.00 s</th><td>50.0 %</td><td><span class="missed">✗ missed' in page
    assert 'P99 TPOT ≤ 1.00 s</th><td>100 %</td><td><span class="met">✓ met' in page
    assert 'P99 E2E ≤ 1.00 s</th><td><span class="none">–' in page
    assert "<strong>Notices</strong><ul><li>a notice</li>" in page


def test_whatever_a_user_writes_is_escaped(make_result):
    scenario = {
        "model": HOSTILE,
        "engine": HOSTILE,
        "cluster": {"accelerator": HOSTILE, "replicas": 1, "tensor_parallel": 1},
        "workload": {HOSTILE: HOSTILE},
    }
    rejected = {"state": "rejected", "reason": HOSTILE, "end_s": 0.0}
    result = make_result([rejected], [], scenario=scenario, warnings=[HOSTILE], notices=[HOSTILE])
    result.summary["window"]["definition"] = HOSTILE
    result.summary["pricing"].update(note=HOSTILE, shares={HOSTILE: 1.0})
    result.summary["cost"]["price_source"] = HOSTILE
    result.summary["kv"]["source"] = HOSTILE
    result.summary["run"]["versions"] = {HOSTILE: HOSTILE}
    page = without_plotly(render_report(result, HOSTILE))
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 20


def test_a_run_without_requests_says_so(make_result):
    page = without_plotly(render_report(make_result([], []), "empty"))
    assert plots(page) == {}
    assert page.count('<p class="empty">– no data</p>') == 9
    assert '<span class="label">TTFT P99</span><b><span class="none">– <small>no data</small></span></b>' in page
    assert "<dt>Arrived</dt><dd>0</dd>" in page
    assert "nan" not in re.sub(r"[Uu]nan|tenant", "", page).lower()


def test_a_run_that_rejected_everything(make_result):
    rejected = {"state": "rejected", "reason": "too long", "arrival_s": 1.0, "end_s": 1.0, "output_tokens": 0}
    page = render_report(make_result([rejected] * 3, []), "rejected")
    assert list(plots(page)) == ["throughput", "lengths"]
    assert "3: too long" in page
    assert 'TTFT P50</span><b><span class="none">–' in page


def test_requests_of_the_warm_up_are_not_in_the_distributions(make_result, two_replicas):
    window = {**two_replicas.summary["window"], "start_s": 1.0, "warmup_excluded": True}
    page = render_report(make_result(two_replicas.requests, two_replicas.steps, replicas=2, window=window), "warm-up")
    drawn = plots(page)
    curve = drawn["ttft_s"]["data"][0]
    assert len(np.frombuffer(base64.b64decode(curve["x"]["bdata"]))) == 3
    assert drawn["kv"]["layout"]["shapes"][0]["x1"] == 1.0
    assert "Grey: outside the measured window" in page


def test_a_long_run_gives_a_small_page(make_result):
    generator = np.random.default_rng(1)
    count = 100_000
    arrival_s = np.cumsum(generator.exponential(0.1, count))
    requests = {
        "request_id": np.arange(count),
        "state": np.full(count, "finished"),
        "reason": np.full(count, ""),
        "tenant": np.full(count, ""),
        "replica": np.zeros(count, dtype=np.int64),
        "prompt_tokens": generator.integers(1, 5000, count),
        "output_tokens": generator.integers(1, 500, count),
        "arrival_s": arrival_s,
        "first_scheduled_s": arrival_s + 0.1,
        "first_token_s": arrival_s + generator.exponential(1.0, count) + 0.1,
        "end_s": arrival_s + 40 + generator.exponential(9.0, count),
        "preemptions": np.zeros(count, dtype=np.int64),
    }
    start_s = np.arange(count) * 0.1
    names = ("prefill_tokens", "decoding_requests", "running_requests", "waiting_requests", "used_blocks")
    steps = {name: generator.integers(0, 90, count) for name in names}
    steps |= {"replica": np.zeros(count, dtype=np.int64), "start_s": start_s, "end_s": start_s + 0.1}
    steps |= {name: np.ones(count, dtype=np.int64) for name in ("steps", "context_tokens", "preempted_requests")}
    page = render_report(make_result(requests, steps), "long")
    assert len(without_plotly(page)) < 400_000
    assert len(page.encode()) < 6_000_000
