"""Several batches in flight over pipeline stages: what holds whatever happens, and what they gain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.bands.run import run_with_bands
from policies.batching.decode_prefill_alternate import DecodePrefillAlternate
from simcore.core.errors import CapacityError, InputError
from simcore.scheduling.scheduler import Scheduler
from tests.e2e.scenarios import (
    differences,
    merged,
    prepare,
    random_scenarios,
    run,
    synthetic,
    write_models,
)

POISSON = {"name": "poisson", "rate_per_s": 20.0}
CHAT = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "pipeline_parallel": 2},
    "pricing": {"profile": "auto"},
    "workload": synthetic(POISSON, (100, 900), (10, 200), requests=200),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipeline")
    write_models(folder)
    return folder


@settings(max_examples=50, deadline=None, derandomize=True)
@given(scenario=random_scenarios(), stages=st.integers(2, 4))
def test_random_scenarios(scenario, stages, folder):
    scenario = merged(scenario, {"cluster": {"pipeline_parallel": stages}})
    result = run(scenario, folder, check=True)
    assert differences(result, run(scenario, folder)) == []
    requests, steps = result.requests, result.steps
    if not scenario["measurement"].get("end_s"):
        assert set(requests["state"]) <= {"finished", "rejected"}
        finished = requests["state"] == "finished"
        assert (requests["first_token_s"][finished] >= requests["arrival_s"][finished]).all()
    for replica in range(scenario["cluster"]["replicas"]):
        own = steps["replica"] == replica
        start_s, end_s = steps["start_s"][own], steps["end_s"][own]
        in_flight = [((start_s <= at) & (end_s > at)).sum() for at in start_s]
        assert max(in_flight, default=0) <= stages
    use = result.summary["utilisation"]
    if use["steps"]:
        assert 0 <= use["bubble_share"] < 1
        assert 0 < use["stage_computing_share"] <= 1
        assert result.summary["kv"]["mean_used_share"] <= 1


def test_policies_count_the_steps_of_all_batches(folder):
    """They see every decode step once, whichever batch asks, and never fewer than before."""
    seen = []
    limits = DecodePrefillAlternate.limits

    def watching(self, replica, now_s):
        seen.append((replica.decode_steps, sum(batch.pool.steps for batch in replica._state.in_flight)))
        return limits(self, replica, now_s)

    changes = {"scheduler": {"batching": {"name": "decode-prefill-alternate"}}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DecodePrefillAlternate, "limits", watching)
        run(merged(CHAT, changes), folder)
    counts = [count for count, _ in seen]
    assert counts == sorted(counts)
    assert all(count == of_all for count, of_all in seen)
    assert counts[-1] > 200


def test_all_memory_comes_back(folder):
    simulation = prepare(merged(CHAT, {"memory": {"num_gpu_blocks": 300}}), folder)
    schedulers = []
    original = Scheduler.__init__

    def noting(self, *facts, **options):
        schedulers.append(self)
        original(self, *facts, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scheduler, "__init__", noting)
        result = simulation.run()
    assert result.summary["preemptions"]["total"] > 0
    assert len(schedulers) == 2
    assert schedulers[0].memory is schedulers[1].memory
    assert schedulers[0].memory.free_blocks == schedulers[0].memory.total_blocks
    assert (result.requests["output_tokens"] > 0).all()


def test_batches_do_not_push_each_other_out_for_ever(folder):
    """Both requests are computed again and again, in turn more urgent, and have no room side by side."""
    changes = {
        "memory": {"num_gpu_blocks": 180, "block_size_tokens": 1, "prefix_caching": False},
        "scheduler": {"ordering": "srpt", "batching": {"max_batched_tokens": 17, "max_running_requests": 2}},
        "workload": {"rows": [(0.0, 99, 48), (0.0, 82, 65)]},
        "measurement": {"end_s": 20.0},
    }
    result = run(merged(CHAT, changes), folder, check=True)
    assert result.summary["counts"]["finished"] == 2
    assert 0 < result.summary["preemptions"]["total"] < 100


def test_one_request_waits_for_every_stage(folder):
    """Alone, a decode step is all stages and what they send; the others have nothing to do."""
    rows = [(0.0, 500, 50)]
    one, two, four = (
        run(merged(CHAT, {"cluster": {"pipeline_parallel": stages}, "workload": {"rows": rows}}), folder)
        for stages in (1, 2, 4)
    )
    tpot_s = [float(result.requests["tpot_s"][0]) for result in (one, two, four)]
    assert tpot_s[0] < tpot_s[1] < tpot_s[2] < 1.1 * tpot_s[0]
    assert two.summary["utilisation"]["bubble_share"] == pytest.approx(0.5, abs=0.03)
    assert four.summary["utilisation"]["bubble_share"] == pytest.approx(0.75, abs=0.03)


def test_under_load_stages_work_side_by_side(folder):
    """Prompts alone keep every stage busy: twice the stages, nearly twice the prompts."""
    closed = synthetic({"name": "closed-loop", "concurrency": 64}, 2000, 1, requests=600)
    changes = {"workload": closed, "scheduler": {"batching": {"max_batched_tokens": 2048}}}
    one = run(merged(CHAT, {"cluster": {"pipeline_parallel": 1}, **changes}), folder)
    two = run(merged(CHAT, changes), folder)
    gain = two.summary["throughput"]["requests_per_s"] / one.summary["throughput"]["requests_per_s"]
    assert 1.8 < gain < 2
    assert two.summary["utilisation"]["bubble_share"] < 0.1
    assert two.summary["cost"]["usd_per_h"] == pytest.approx(2 * one.summary["cost"]["usd_per_h"])


def test_slots_are_shared_by_all_batches(folder):
    changes = {"scheduler": {"batching": {"max_running_requests": 5, "max_batched_tokens": 512}}}
    steps = run(merged(CHAT, changes), folder).steps
    most = 0
    for at in steps["start_s"]:
        most = max(most, int(steps["running_requests"][(steps["start_s"] <= at) & (steps["end_s"] > at)].sum()))
    assert most == 5


def test_admission_hears_of_requests_that_end_in_any_batch(folder):
    """Clients of a closed loop are never more than are let in, unless ends are missed."""
    closed = synthetic({"name": "closed-loop", "concurrency": 8}, (100, 900), (10, 60), requests=200)
    limit = {"name": "concurrency-limit", "max_requests": 8}
    result = run(merged(CHAT, {"workload": closed, "scheduler": {"admission": [limit]}}), folder)
    assert (result.requests["state"] == "finished").all()


@pytest.mark.parametrize("samples", [1, 2])
def test_a_run_cut_off_has_every_request_once(samples, folder):
    workload = CHAT["workload"] | {"samples": samples}
    result = run(merged(CHAT, {"workload": workload, "measurement": {"end_s": 2.0}}), folder)
    counts = result.summary["counts"]
    assert result.requests["request_id"].tolist() == list(range(counts["arrived"]))
    assert 0 < counts["unfinished"] < counts["arrived"] < 200


def test_clients_that_give_up_are_forgotten(folder):
    hurried = synthetic({"name": "poisson", "rate_per_s": 60.0}, (500, 2000), (50, 200), requests=150)
    changes = {"workload": hurried | {"first_token_timeout_s": 0.4, "timeout_s": 1.5}}
    result = run(merged(CHAT, changes), folder, check=True)
    counts = result.summary["counts"]
    assert counts["finished"] + counts["rejected"] == 150
    assert counts["rejected"] > 0


def test_one_that_waits_gives_up_beside_one_in_a_step(folder):
    """Both clients give up while the first prompt is computed; only the other request is forgotten at once."""
    workload = {"rows": [(0.0, 8000, 10), (0.0, 8000, 10)], "timeout_s": 0.08}
    changes = {"workload": workload, "scheduler": {"batching": {"max_running_requests": 1}}}
    result = run(merged(CHAT, changes), folder, check=True)
    assert result.summary["counts"]["rejected"] == 2
    assert result.steps["prefill_tokens"].tolist() == [8000]


def test_bands_are_drawn_for_stages_too(folder):
    simulation = prepare(merged(CHAT, {"workload": synthetic(POISSON, 200, 20, requests=20)}), folder)
    summary = run_with_bands(simulation, 10, jobs=1).summary
    assert np.isfinite(summary["metrics"]["ttft_s"]["mean"])


@pytest.mark.parametrize(
    ("changes", "said"),
    {
        "too many stages": ({"cluster": {"pipeline_parallel": 33}}, r"pipeline_parallel is 33, expected at most 32"),
        "turns of groups": ({"scheduler": {"ordering": "vtc"}}, r"1 with the ordering vtc"),
        "swapping": ({"scheduler": {"preemption": {"mode": "swap"}}}, r"preemption by swap"),
        "no number": ({"cluster": {"pipeline_parallel": 0}}, r"cluster\.pipeline_parallel is 0"),
    }.values(),
)
def test_what_does_not_go_together_is_refused(changes, said, folder):
    with pytest.raises(InputError, match=said):
        prepare(merged(CHAT, changes), folder)


def test_a_model_that_does_not_fit_its_stages_is_told(folder):
    changes = {"model": "llama-3.1-70b", "cluster": {"accelerator": "l40s", "tensor_parallel": 1}}
    with pytest.raises(CapacityError, match=r"does not fit 2 l40s.*would do"):
        prepare(merged(CHAT, changes), folder)
