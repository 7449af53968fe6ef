"""A Ray cluster does what processes do, to the byte, also when it loses a machine in between."""

import os
import sys
from contextlib import closing
from operator import truediv
from pathlib import Path

import pytest

from experiments.processes import ProcessPool
from experiments.runners import as_they_come, runner_of
from experiments.sweep.design import cells_of
from experiments.sweep.execution import TABLE, carry_out
from simcore.core.errors import InputError, ServetwinError
from simcore.core.files import read_json

pytest.importorskip("ray", reason="Ray is not installed (extra: ray)")

DOCUMENT = {
    "model": "qwen2.5-0.5b",
    "cluster": {"accelerator": "l4"},
    "workload": {
        "requests": 150,
        "arrivals": {"name": "poisson", "rate_per_s": 10.0},
        "prompt_tokens": {"name": "fixed", "tokens": 100},
        "output_tokens": {"name": "fixed", "tokens": 20},
    },
}
CELLS = {"cluster.replicas": [1, 2, 3, 4], "scheduler.ordering": ["fcfs", "sjf", "vtc"]}


@pytest.fixture
def cluster(monkeypatch):
    """Three raylets on this machine, one of which is the head."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    found.others = [found.add_node(num_cpus=1) for _ in range(2)]
    yield found
    found.shutdown()


def test_a_sweep_that_loses_a_machine_ends_with_the_bytes_of_a_pool_of_processes(cluster, tmp_path):
    cells = cells_of(DOCUMENT, Path(), CELLS)
    done = []

    def lose_a_machine(cell):
        done.append(cell)
        if len(done) == 2:
            cluster.remove_node(cluster.others.pop(), allow_graceful=False)

    with closing(runner_of(ray=cluster.address)) as runner:
        assert runner.at_once == 3
        carry_out(cells, tmp_path / "ray", runner, progress=lose_a_machine)
        with pytest.raises(ServetwinError, match=r"/none\.json: no such file"):
            list(as_they_come(runner, read_json, [Path("/none.json")]))
        with pytest.raises(RuntimeError, match=r"(?s)the case 3:\n.*TypeError"):
            list(as_they_come(runner, truediv, [3], lambda item: f"the case {item}"))
    assert len(done) == len(cells)
    with closing(ProcessPool(2)) as pool:
        carry_out(cells, tmp_path / "processes", pool)
    assert (tmp_path / "ray" / TABLE).read_bytes() == (tmp_path / "processes" / TABLE).read_bytes()


def test_an_address_where_no_cluster_answers_is_told():
    with pytest.raises(InputError, match="--ray"):
        runner_of(ray="127.0.0.1:1")
