"""What ``servetwin run`` prints of rates, tenants and the cache."""

import re

import pytest

WORKLOAD = """\
model: smollm2-135m
cluster: {accelerator: h100-sxm}
workload:
  requests: 400
  arrivals: {name: poisson, rate_per_s: 100}
  prefix: [{name: shared, tokens: {name: fixed, tokens: 64}}]
  prompt_tokens: {name: fixed, tokens: 20}
  output_tokens: {name: fixed, tokens: 40}
"""
TENANTS = "  tenants: [{name: gold, share: 0.25}, {name: free, share: 0.75}]\n"


@pytest.fixture
def printed(command, tmp_path):
    def run(scenario, *options):
        (tmp_path / "s.yaml").write_text(scenario)
        ended = command("run", tmp_path / "s.yaml", "--out", tmp_path / "out", *options)
        assert (ended.code, ended.err) == (0, "")
        return ended.out

    return run


def figures(text):
    return [float(number.replace(",", "")) for number in re.findall(r"[\d,]+\.?\d*", text)]


def test_offered_and_served_rates_and_prefix_hits(printed):
    out = printed(WORKLOAD)
    (rates,) = re.findall(r"throughput: (.*) requests/s offered, (.*) served", out)
    offered, served = (figures(rate)[0] for rate in rates)
    assert 80 < served <= offered < 120
    (share,) = re.findall(r"([\d.]+)% of prompt tokens found cached", out)
    assert 60 < float(share) <= 100 * 64 / 84


def test_an_overloaded_service_cannot_keep_up(printed):
    slow = "scheduler: {batching: {max_running_requests: 4}}\n"
    out = printed(WORKLOAD.replace("rate_per_s: 100", "rate_per_s: 200") + slow)
    assert "Warning: The service cannot keep up: of " in out
    assert "cannot keep up" not in printed(WORKLOAD)


def test_tenants_have_a_table_and_limits_of_their_own(printed):
    limits = "scheduler: {admission: [{name: token-bucket, rate_per_s: {gold: 1000, free: 5}}]}\n"
    out = printed(WORKLOAD + TENANTS + limits)
    (gold,) = re.findall(r"^ *gold +(.*)$", out, re.MULTILINE)
    (free,) = re.findall(r"^ *free +(.*)$", out, re.MULTILINE)
    assert "TTFT P99 (s)" in out
    assert figures(gold)[0] == figures(gold)[1] > 70
    assert figures(free)[1] < figures(free)[0] / 4


def test_one_tenant_has_no_table(printed):
    assert "in limits" not in printed(WORKLOAD)
