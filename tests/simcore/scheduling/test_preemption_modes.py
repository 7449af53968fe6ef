"""What happens when KV memory runs short, in each mode."""

import pytest

from simcore.build.simulation import Simulation
from simcore.service.open_requests import GAVE_WAY

WORKLOAD = {
    "requests": 200,
    "arrivals": {"name": "poisson", "rate_per_s": 40.0},
    "prompt_tokens": {"name": "uniform", "low": 10, "high": 300},
    "output_tokens": {"name": "uniform", "low": 10, "high": 200},
}


def scenario(mode, **scheduler):
    return {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "h100-sxm"},
        "memory": {"num_gpu_blocks": 200},
        "workload": WORKLOAD,
        "scheduler": {"preemption": {"mode": mode}, **scheduler},
    }


def comparable(result):
    return {**result.summary, "run": None}, {name: column.tolist() for name, column in result.steps.items()}


@pytest.mark.parametrize("mode", ["recompute", "wait", "reject"])
def test_jumping_and_stepping_agree_and_all_books_balance(mode, tmp_path):
    jumping = Simulation.prepare(scenario(mode), tmp_path).run(check=True)
    stepping = Simulation.prepare(scenario(mode), tmp_path).run(fast_forward=False, check=True)
    assert comparable(jumping) == comparable(stepping)
    counts = jumping.summary["counts"]
    assert counts["finished"] + counts["rejected"] == 200


def test_rejecting_drops_victims_and_counts_them(tmp_path):
    summary = Simulation.prepare(scenario("reject"), tmp_path).run().summary
    assert summary["counts"]["rejected_by_reason"] == {GAVE_WAY: summary["counts"]["rejected"]}
    assert summary["counts"]["rejected"] > 0
    assert summary["preemptions"]["total"] == 0


def test_waiting_computes_less_again_than_recomputing(tmp_path):
    recompute = Simulation.prepare(scenario("recompute"), tmp_path).run().summary
    wait = Simulation.prepare(scenario("wait"), tmp_path).run().summary
    assert recompute["counts"] == wait["counts"]
    assert 0 < wait["preemptions"]["total"] < recompute["preemptions"]["total"]
    assert wait["utilisation"]["prefill_tokens"] < recompute["utilisation"]["prefill_tokens"]


def test_waiting_gives_way_when_nobody_could_run(tmp_path):
    """Two requests that together need more than there is: one must go, or both would wait for ever."""
    (tmp_path / "two.csv").write_text("arrival_s,prompt_tokens,output_tokens\n0,60,60\n0,60,60\n")
    document = scenario("wait") | {"memory": {"num_gpu_blocks": 11}, "workload": {"trace": "two.csv", "format": "csv"}}
    summary = Simulation.prepare(document, tmp_path).run(check=True).summary
    assert (summary["counts"]["finished"], summary["preemptions"]["total"]) == (2, 1)


def test_reserved_blocks_keep_patient_requests_from_blocking_urgent_ones(tmp_path):
    """The classic inversion: patient requests hold all memory when an urgent one arrives, and it must wait for them."""
    rows = ["arrival_s,prompt_tokens,output_tokens,level", *(["0,300,400,1"] * 4), "0.5,1700,50,0"]
    (tmp_path / "inversion.csv").write_text("\n".join(rows) + "\n")
    workload = {"trace": "inversion.csv", "format": "csv", "columns": {"priority": "level"}}

    def urgent_waits_s(reserved_blocks):
        document = scenario("wait", ordering="priority") | {"workload": workload}
        document["scheduler"]["preemption"]["reserved_blocks"] = reserved_blocks
        result = Simulation.prepare(document, tmp_path).run(check=True)
        assert result.summary["counts"]["finished"] == 5
        return result.requests["queue_s"][-1]

    assert urgent_waits_s({}) > 1.0
    assert urgent_waits_s({0: 130}) < 0.05


def test_who_holds_back_an_urgent_request_inherits_its_urgency(tmp_path):
    """The classic inversion, with memory as the lock.

    A patient request holds what the urgent one needs and is a few tokens from its end when it needs a block more. Of
    the blocks that one of four others frees, the next two of them would take the last, for sixteen tokens each.
    """
    others = ["0,8,21,1", "0,15,33,1", "0,14,34,1", "0,13,35,1"]
    rows = ["arrival_s,prompt_tokens,output_tokens,level", *others, "0,160,27,2", "0.02,176,5,0"]
    (tmp_path / "inversion.csv").write_text("\n".join(rows) + "\n")
    workload = {"trace": "inversion.csv", "format": "csv", "columns": {"priority": "level"}}

    def run(inherit_priority):
        document = scenario("wait", ordering="priority") | {"workload": workload, "memory": {"num_gpu_blocks": 20}}
        document["scheduler"]["preemption"]["inherit_priority"] = inherit_priority
        jumping = Simulation.prepare(document, tmp_path).run(check=True)
        stepping = Simulation.prepare(document, tmp_path).run(fast_forward=False, check=True)
        assert comparable(jumping) == comparable(stepping)
        assert jumping.summary["preemptions"]["total"] == 0
        return jumping.requests

    inverted, inherited = run(False), run(True)
    assert inherited["e2e_s"][4] < 0.7 * inverted["e2e_s"][4], "the holder"
    assert inherited["queue_s"][5] < 0.8 * inverted["queue_s"][5], "the urgent request"
    assert inherited["e2e_s"][2] > inverted["e2e_s"][2], "at the cost of one in between"


def test_a_request_that_only_reserved_blocks_could_hold_is_rejected(tmp_path):
    (tmp_path / "one.csv").write_text("arrival_s,prompt_tokens,output_tokens,level\n0,1000,10,1\n0,1000,10,0\n")
    workload = {"trace": "one.csv", "format": "csv", "columns": {"priority": "level"}}
    document = scenario("recompute") | {"workload": workload}
    document["scheduler"]["preemption"]["reserved_blocks"] = {0: 150}
    result = Simulation.prepare(document, tmp_path).run()
    assert result.requests["state"].tolist() == ["rejected", "finished"]


def test_reserved_blocks_come_back_from_a_saved_scenario(tmp_path):
    document = scenario("wait")
    document["scheduler"]["preemption"]["reserved_blocks"] = {0: 20}
    saved = Simulation.prepare(document, tmp_path).scenario.document()
    assert Simulation.prepare(saved, tmp_path).scenario.scheduler.preemption.reserved_blocks == {0: 20}


def test_clients_of_dropped_requests_send_on(tmp_path):
    closed = WORKLOAD | {"arrivals": {"name": "closed-loop", "concurrency": 40}}
    summary = Simulation.prepare(scenario("reject") | {"workload": closed}, tmp_path).run(check=True).summary
    assert summary["counts"]["rejected"] > 0
    assert summary["counts"]["finished"] + summary["counts"]["rejected"] == 200
