"""What pools apart carry by estimate, against runs and against what must be so."""

from math import sqrt

import pytest

from simcore.build.disaggregation_estimate import compare_pools, usual_lengths
from simcore.build.simulation import Simulation

TPOT_S = 0.015
POOLS = [{"name": "p", "role": "prefill", "replicas": 2}, {"name": "d", "role": "decode", "replicas": 2}]
APART = {"accelerator": "h100-sxm", "pools": POOLS}
MIXED = {"accelerator": "h100-sxm", "replicas": 4, "routing": "least-requests"}


def scenario(prompt, output, rate_per_s=1.0, cluster=APART, requests=300):
    return {
        "model": "llama-3.1-8b",
        "cluster": cluster,
        "workload": {
            "requests": requests,
            "arrivals": {"name": "constant", "rate_per_s": rate_per_s},
            "prompt_tokens": {"name": "fixed", "tokens": prompt},
            "output_tokens": {"name": "fixed", "tokens": output},
        },
        "slo": {"ttft_s": {"p99": 2.0}, "tpot_s": {"p99": TPOT_S}},
    }


def prepared(*args, folder, **more):
    return Simulation.prepare(scenario(*args, **more), folder)


@pytest.mark.parametrize(("prompt", "output", "apart_is_better"), [(2500, 240, True), (2500, 700, False)])
def test_between_the_two_estimates_one_keeps_the_limit_and_the_other_does_not(
    prompt, output, apart_is_better, tmp_path
):
    (found,) = compare_pools(prepared(prompt, output, folder=tmp_path), [(prompt, output)])
    apart, mixed = found.apart.requests_per_s, found.mixed.requests_per_s
    assert (apart > mixed) == apart_is_better
    rate = sqrt(apart * mixed)
    tpot_s = {}
    for name, cluster in (("apart", APART), ("mixed", MIXED)):
        requests = round(rate * 0.06 * output)  # arrivals go on for several times what a request takes
        result = prepared(prompt, output, rate, cluster, requests, folder=tmp_path).run()
        tpot_s[name] = float(result.requests["tpot_s"][requests // 2 : 4 * requests // 5].mean())
    assert (tpot_s["apart"] < TPOT_S) == apart_is_better
    assert (tpot_s["mixed"] < TPOT_S) != apart_is_better


def test_twice_the_replicas_carry_twice_as_much(tmp_path):
    doubled = APART | {"pools": [pool | {"replicas": 4} for pool in POOLS]}
    (one,), (two,) = (
        compare_pools(prepared(2000, 200, cluster=cluster, folder=tmp_path), [(2000, 200)])
        for cluster in (APART, doubled)
    )
    assert two.apart.requests_per_s == pytest.approx(2 * one.apart.requests_per_s)
    assert two.mixed.requests_per_s == pytest.approx(2 * one.mixed.requests_per_s)
    assert two.apart.bound_by == one.apart.bound_by


def test_usual_lengths_surround_the_workloads(tmp_path):
    lengths = usual_lengths(prepared(1000, 100, folder=tmp_path))
    assert (1000, 100) in lengths
    assert len(lengths) == 9
