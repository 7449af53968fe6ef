"""What is characteristic of each engine preset, and that jumps over its steps equal single ones."""

from itertools import pairwise

import pytest

from servetwin.api import prepare, simulate
from simcore.core.errors import InputError
from simcore.engines import engine_names
from tests.e2e.scenarios import differences, merged, run

RESERVING = ("hf-static", "llama.cpp", "orca", "tgi")


def scenario(engine, workload=None, **changes):
    base = {
        "model": "llama-3.1-8b",
        "engine": engine,
        "cluster": {"accelerator": "h100-sxm"},
        "max_context_tokens": 2048,
        "workload": {
            "requests": 120,
            "arrivals": {"name": "poisson", "rate_per_s": 20.0},
            "prompt_tokens": {"name": "uniform", "low": 10, "high": 1500},
            "output_tokens": {"name": "uniform", "low": 2, "high": 300},
            "max_output_tokens": 400,
        },
    }
    base["workload"] |= workload or {}
    return merged(base, changes)


def fixed(tokens):
    return {"name": "fixed", "tokens": tokens}


@pytest.mark.parametrize("engine", engine_names())
@pytest.mark.parametrize("memory", [{}, {"num_gpu_blocks": 6000}], ids=["ample", "short"])
def test_jumps_equal_single_steps(engine, memory):
    simulation = prepare(scenario(engine, memory=memory))
    jumping, stepping = simulation.run(check=True), simulation.run(fast_forward=False, check=True)
    assert differences(jumping, stepping) == []
    assert set(jumping.requests["state"]) == {"finished"}


@pytest.mark.parametrize("engine", RESERVING)
def test_who_has_reserved_all_that_it_may_need_is_never_preempted(engine):
    result = simulate(scenario(engine, memory={"num_gpu_blocks": 2_000 if engine == "tgi" else 6_000}))
    assert result.summary["preemptions"]["total"] == 0
    assert set(result.requests["state"]) == {"finished"}


def test_orca_runs_as_many_as_their_limits_leave_room_for():
    """Prompts of 100 tokens that may go on for 900 take 999 slots each, though they stop after 10."""
    workload = {"prompt_tokens": fixed(100), "output_tokens": fixed(10), "max_output_tokens": 900}
    limited = simulate(scenario("orca", workload=workload, memory={"num_gpu_blocks": 5_000}))
    assert limited.steps["running_requests"].max() == 5
    assert limited.summary["kv"]["peak_used_blocks"] == 5 * 999
    free = simulate(
        scenario("orca", workload={**workload, "max_output_tokens": None}, memory={"num_gpu_blocks": 5_000})
    )
    assert free.steps["running_requests"].max() == 2  # nobody says less than the longest context


def test_orca_prefills_whole_prompts_beside_decodes():
    steps = simulate(scenario("orca")).steps
    assert ((steps["prefill_tokens"] > 0) & (steps["decoding_requests"] > 0)).any()


def test_sglang_cuts_prompts_to_fill_each_step_and_lets_decodes_wait(tmp_path):
    scenario = {
        "model": "llama-3.1-8b",
        "engine": "sglang",
        "cluster": {"accelerator": "h100-sxm"},
        "host": {"request_s": 0.0, "per_prompt_token_s": 0.0},
        "scheduler": {"batching": {"max_batched_tokens": 800}},
        "workload": {"rows": [(0.0, 400, 3), (0.0, 800, 3), (0.0, 300, 3)]},
    }
    jumping, stepping = (run(scenario, tmp_path, fast_forward=jumps, check=True) for jumps in (True, False))
    assert differences(jumping, stepping) == []
    assert stepping.steps["prefill_tokens"].tolist()[:2] == [800, 700]
    assert stepping.steps["decoding_requests"].tolist()[:3] == [0, 0, 3]


def test_trtllm_rejects_prompts_beyond_its_token_budget():
    budget = {"scheduler": {"batching": {"max_batched_tokens": 1000}}}
    result = simulate(scenario("trtllm", **budget))
    longer = result.requests["prompt_tokens"] > 1000
    assert 0 < longer.sum() < 120
    assert result.summary["counts"]["rejected_by_reason"] == {
        "prompt is longer than the batching policy takes": int(longer.sum())
    }
    assert (result.requests["state"] == "rejected").tolist() == longer.tolist()


def test_prompts_beyond_the_budget_have_a_step_for_themselves_where_they_are_not_rejected():
    budget = {"scheduler": {"batching": {"max_batched_tokens": 1000, "reject_longer": False}}}
    result = simulate(scenario("trtllm", **budget))
    assert set(result.requests["state"]) == {"finished"}
    alone = result.steps["prefill_tokens"] > 1000
    assert alone.any()
    assert not result.steps["decoding_requests"][alone].any()


def test_a_static_batch_admits_nobody_until_it_has_ended():
    result = simulate(scenario("hf-static", workload={"arrivals": {"name": "poisson", "rate_per_s": 200.0}}))
    ends, starts = result.requests["end_s"], result.requests["first_scheduled_s"]
    batches = sorted(set(starts))
    assert 1 < len(batches) < 20
    for begun, following in pairwise(batches):
        assert ends[starts == begun].max() <= following


def test_launches_from_python_slow_down_what_is_no_graph():
    workload = {"requests": 1, "prompt_tokens": fixed(100), "output_tokens": fixed(100)}
    eager, graphs = (simulate(scenario(engine, workload=workload)) for engine in ("hf-static", "vllm-v1"))
    assert eager.requests["tpot_s"][0] > 1.5 * graphs.requests["tpot_s"][0]


def test_tgi_pauses_decodes_for_prompts_once_enough_wait():
    steps = simulate(scenario("tgi")).steps
    prompts, decodes = steps["prefill_tokens"] > 0, steps["decoding_requests"] > 0
    assert prompts.any()
    assert decodes.any()
    assert not (prompts & decodes).any()


def test_tgi_lets_a_few_wait_for_twenty_tokens(tmp_path):
    """Ten run when one more comes, fewer than 0.3 times as many: 19 tokens after the last prompts it is let in."""
    (tmp_path / "rows.csv").write_text(
        "arrival_s,prompt_tokens,output_tokens\n" + "0,100,200\n" * 10 + "0.05,100,5\n", encoding="utf-8"
    )
    document = scenario("tgi") | {"workload": {"trace": str(tmp_path / "rows.csv"), "format": "csv"}}
    steps = simulate(document).steps
    prompts = steps["prefill_tokens"] > 0
    assert steps["prefill_tokens"][prompts].tolist() == [1000, 100]
    first, second = prompts.nonzero()[0]
    assert steps["steps"][first + 1 : second].sum() == 19
    at_once = merged(document, {"scheduler": {"batching": {"waiting_served_ratio": 0.0}}})
    steps = simulate(at_once).steps
    first, second = (steps["prefill_tokens"] > 0).nonzero()[0]
    assert steps["steps"][first + 1 : second].sum() < 19


def test_llama_cpp_runs_no_more_than_its_slots_and_their_contexts():
    busy = simulate(scenario("llama.cpp", workload={"arrivals": {"name": "poisson", "rate_per_s": 200.0}}))
    assert busy.steps["running_requests"].max() == 4
    assert busy.summary["kv"]["peak_used_blocks"] == 4 * 2048
    narrow = simulate(scenario("llama.cpp", memory={"num_gpu_blocks": 2 * 2048 + 5}))
    assert narrow.steps["running_requests"].max() == 2


def test_a_request_that_outgrows_its_slot_is_refused():
    result = simulate(scenario("llama.cpp", max_context_tokens=1000))
    refused = result.requests["state"] == "rejected"
    assert 0 < refused.sum() < 120
    assert (result.requests["prompt_tokens"][refused] > 690).all()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"memory": {"prefix_caching": True}}, "prefix_caching keeps blocks"),
        ({"scheduler": {"preemption": {"mode": "swap"}}}, "mode is swap"),
    ],
)
def test_what_reserved_memory_cannot_do_is_refused(changes, reason):
    with pytest.raises(InputError, match=f"memory.reservation is 'limit', expected none, since .*{reason}"):
        prepare(scenario("orca", **changes))
