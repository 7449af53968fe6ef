"""Preemption by swapping: what it keeps, what it costs, and when it is worth it."""

import numpy as np
import pytest

from simcore.build.simulation import Simulation
from tests.e2e.scenarios import differences

SHORT_OF_MEMORY = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm"},
    "memory": {"num_gpu_blocks": 1000, "prefix_caching": False, "swap_space_gb": 100},
    "workload": {
        "requests": 40,
        "arrivals": {"name": "poisson", "rate_per_s": 20.0},
        "prompt_tokens": {"name": "uniform", "low": 3000, "high": 4000},
        "output_tokens": {"name": "uniform", "low": 600, "high": 1000},
    },
}
BLOCK_BYTES = 16 * 32 * 2 * 8 * 128 * 2
"""A block of 16 tokens: 32 layers, keys and values, 8 heads of 128 numbers of 2 bytes."""


def run(folder, mode="swap", **memory):
    document = SHORT_OF_MEMORY | {
        "memory": SHORT_OF_MEMORY["memory"] | memory,
        "scheduler": {"preemption": {"mode": mode}},
    }
    return Simulation.prepare(document, folder).run(check=True)


def test_nothing_is_computed_twice(tmp_path):
    swap, recompute = run(tmp_path), run(tmp_path, "recompute")
    prompts = int(swap.requests["prompt_tokens"].sum())
    assert swap.summary["preemptions"]["total"] > 10
    assert swap.summary["utilisation"]["prefill_tokens"] == prompts
    assert recompute.summary["utilisation"]["prefill_tokens"] > 1.3 * prompts
    assert (swap.requests["output_tokens"] == recompute.requests["output_tokens"]).all()


def test_the_summary_says_what_moved(tmp_path):
    swap = run(tmp_path)
    preemptions, links = swap.summary["preemptions"], swap.summary["links"]
    assert preemptions["swapped_out"] == preemptions["swapped_in"] == preemptions["total"]
    assert preemptions["swapped_out_bytes"] == preemptions["swapped_in_bytes"] == links["GPU to CPU"]["bytes"]
    blocks, rest = divmod(preemptions["swapped_out_bytes"], BLOCK_BYTES)
    assert rest == 0
    assert 3000 // 16 < blocks / preemptions["swapped_out"] < 5000 // 16
    assert links["CPU to GPU"]["bytes"] == links["GPU to CPU"]["bytes"]
    assert np.isin(swap.transfers["kind"], ["swap out", "swap in"]).all()
    assert run(tmp_path, "recompute").summary["links"] is None


def test_swapping_is_better_over_a_fast_link_and_worse_over_a_slow_one(tmp_path):
    """Computing a token again takes the same whatever the link; its bytes do not (Kwon et al., section 7.3)."""
    recompute = run(tmp_path, "recompute").summary["metrics"]["e2e_s"]["mean"]

    def swapping(gb_per_s):
        link = {"to_gpu_gb_per_s": gb_per_s, "from_gpu_gb_per_s": gb_per_s}
        return run(tmp_path, host_link=link).summary["metrics"]["e2e_s"]["mean"]

    assert swapping(60.0) < 0.98 * recompute
    assert swapping(4.0) > 1.05 * recompute


def test_without_room_in_swap_space_tokens_are_computed_again(tmp_path):
    result = run(tmp_path, swap_space_gb=1.01 * BLOCK_BYTES / 1e9)
    recompute = run(tmp_path, "recompute")
    assert result.summary["preemptions"]["swapped_out"] == 0
    assert result.summary["metrics"]["e2e_s"] == recompute.summary["metrics"]["e2e_s"]


def test_the_step_that_swaps_is_longer_by_the_transfers(tmp_path):
    """Two requests of 1024 tokens decode until memory is short; the later one leaves and returns."""
    (tmp_path / "two.csv").write_text("arrival_s,prompt_tokens,output_tokens\n0,1024,300\n0,1024,300\n")
    document = SHORT_OF_MEMORY | {
        "workload": {"trace": "two.csv", "format": "csv"},
        "memory": SHORT_OF_MEMORY["memory"]
        | {"num_gpu_blocks": 1 + 2 * 64 + 10, "host_link": {"from_gpu_gb_per_s": 1}},
        "scheduler": {"preemption": {"mode": "swap"}},
    }
    result = Simulation.prepare(document, tmp_path).run(check=True)
    out, back = (np.flatnonzero(result.transfers["kind"] == kind) for kind in ("swap out", "swap in"))
    assert len(out) == len(back) == 1
    steps = result.steps
    row = int(np.flatnonzero(steps["preempted_requests"])[0])
    assert steps["start_s"][row] == result.transfers["start_s"][out[0]]
    out_s = float(result.transfers["end_s"][out[0]] - result.transfers["start_s"][out[0]])
    assert out_s == pytest.approx(69 * BLOCK_BYTES / 1e9)
    typical_s = (steps["end_s"][row + 1] - steps["start_s"][row + 1]) / steps["steps"][row + 1]
    assert steps["end_s"][row] - steps["start_s"][row] == pytest.approx(out_s + typical_s, rel=1e-3)
    assert result.summary["metrics"]["itl_s"]["max"] > out_s
    assert result.requests["preemptions"].tolist() == [0, 1]
    assert result.summary["metrics"]["itl_s"]["count"] == 2 * 299


def test_a_client_may_give_up_while_its_request_is_away(tmp_path):
    """Both give up at the same time, one while it decodes; whoever comes later finds nothing in the way."""
    rows = "0,1024,300\n0,1024,300\n2,1024,100\n2,1024,100\n"
    (tmp_path / "four.csv").write_text(f"arrival_s,prompt_tokens,output_tokens\n{rows}")
    document = SHORT_OF_MEMORY | {
        "workload": {"trace": "four.csv", "format": "csv", "timeout_s": 1.5},
        "memory": SHORT_OF_MEMORY["memory"] | {"num_gpu_blocks": 1 + 2 * 64 + 10},
        "scheduler": {"preemption": {"mode": "swap"}},
    }
    simulation = Simulation.prepare(document, tmp_path)
    jumping, stepping = simulation.run(check=True), simulation.run(fast_forward=False, check=True)
    assert differences(jumping, stepping) == []
    assert jumping.requests["state"].tolist() == ["rejected"] * 2 + ["finished"] * 2
    assert jumping.requests["end_s"].tolist()[:2] == [1.5, 1.5]
    assert (jumping.transfers["start_s"][jumping.transfers["kind"] == "swap in"] > 2).all()


@pytest.mark.parametrize("seed", [12, 14, 19])
def test_what_windows_give_back_lets_requests_return_at_once(seed, tmp_path):
    """With nobody in the queue, a jump must not pass the step in which a swapped-out request could come back."""
    document = {
        "model": "smollm2-135m",
        "seed": seed,
        "cluster": {"accelerator": "l4"},
        "memory": {"num_gpu_blocks": 60, "retention": {"window_tokens": 64}, "swap_space_gb": 0.05},
        "scheduler": {"preemption": {"mode": "swap"}},
        "workload": {
            "requests": 30,
            "arrivals": {"name": "poisson", "rate_per_s": 40.0},
            "prompt_tokens": {"name": "uniform", "low": 1, "high": 200},
            "output_tokens": {"name": "uniform", "low": 1, "high": 300},
        },
    }
    simulation = Simulation.prepare(document, tmp_path)
    jumping, stepping = simulation.run(check=True), simulation.run(fast_forward=False, check=True)
    assert jumping.summary["preemptions"]["swapped_in"] > 0
    assert differences(jumping, stepping) == []
