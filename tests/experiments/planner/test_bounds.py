"""Bounds lie below what simulations need, and not far below."""

from pathlib import Path

import pytest

from experiments.planner.bounds import Asked, bound_of
from experiments.planner.load import Load
from simcore.build.simulation import Simulation

LENGTHS = {
    "prompt_tokens": {"name": "lognormal", "median": 500, "sigma": 0.5},
    "output_tokens": {"name": "fixed", "tokens": 60},
}


def document(rate: float, **cluster) -> dict:
    workload = {"requests": 1500, "arrivals": {"name": "constant", "rate_per_s": rate}} | LENGTHS
    return {"model": "llama-3.1-8b", "cluster": {"accelerator": "l40s"} | cluster, "workload": workload}


def bound(rate: float, objectives=None, **cluster):
    workload = document(rate)["workload"]
    load = Load.of(Simulation.prepare(document(rate), Path()).workload, workload)
    return bound_of(Asked(document(rate, **cluster), load, objectives or {}))


def test_a_replica_serves_nearly_as_much_as_the_bound_allows_and_no_more():
    at_most = 10.0 / bound(10.0).work
    assert Simulation.prepare(document(0.8 * at_most), Path()).run().summary["throughput"]["keeps_up"]
    assert not Simulation.prepare(document(1.3 * at_most), Path()).run().summary["throughput"]["keeps_up"]


def test_work_grows_with_the_rate_and_with_a_tighter_limit_on_tpot():
    assert bound(40.0).work == pytest.approx(4 * bound(10.0).work, rel=0.02)
    assert bound(10.0, {"tpot_s": {"p99": 0.03}}).work > bound(10.0).work
    assert bound(200.0).replicas > 1


def test_why_a_set_up_is_impossible_is_told():
    assert "with a replica to itself" in bound(1.0, {"ttft_s": {"p99": 0.01}}).impossible
    assert bound(1.0, accelerator="h100-sxm", tensor_parallel=3).impossible is not None


def test_stages_of_a_pipeline_work_side_by_side():
    assert bound(10.0, pipeline_parallel=2).work < 0.75 * bound(10.0).work
