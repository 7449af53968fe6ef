from dashboard.verdict import verdict_section, verdicts

SUMMARY = {
    "slo": {
        "ttft_s.p99": {"limit_s": 0.5, "percentile": "p99", "share_within": 0.995, "met": True},
        "tpot_s.p99": {"limit_s": 0.01, "percentile": "p99", "share_within": 0.5, "met": False},
    },
    "metrics": {"ttft_s": {"p99": 0.25}, "tpot_s": {"p99": 0.015}},
    "throughput": {"offered_requests_per_s": 10.0, "served_requests_per_s": 8.0, "keeps_up": False},
    "cost": {"usd_per_million_output_tokens": 0.6, "usd_per_h": 3.99},
}


def test_limits_load_and_cost_are_told_in_order():
    assert list(verdicts(SUMMARY)) == [
        (True, "P99 TTFT is 250 ms and holds its limit of 500 ms, kept by 99.5 % of requests."),
        (False, "P99 TPOT is 15.0 ms and misses its limit of 10.0 ms, kept by 50.0 % of requests."),
        (False, "10.0 requests/s were offered and 8.00 served while requests arrived; the queue grew throughout."),
        (None, "A million output tokens cost 0.600 USD at 3.99 USD/h."),
    ]
    assert '<li><span class="missed">✗</span> P99 TPOT' in verdict_section(SUMMARY)


def test_what_is_not_known_is_said():
    unknown = {"limit_s": 0.5, "percentile": "p99", "share_within": None, "met": None}
    rates = {"offered_requests_per_s": None, "served_requests_per_s": None, "keeps_up": None}
    cost = {"usd_per_million_output_tokens": None, "usd_per_h": 1.0}
    summary = SUMMARY | {"slo": {"ttft_s.p99": unknown}, "throughput": rates, "cost": cost}
    assert list(verdicts(summary)) == [(None, "Nothing is known of P99 TTFT, whose limit is 500 ms.")]
    assert list(verdicts(summary | {"slo": None})) == [(None, "No limits were stated.")]
