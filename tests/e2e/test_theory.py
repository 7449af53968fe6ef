"""Whole runs against queueing theory and against the physics of the accelerator."""

import numpy as np
import pytest

from tests.e2e.scenarios import merged, run, synthetic

NS_PER_S = 1_000_000_000
ONE_SLOT = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "h100-sxm"},
    "host": {"request_s": 0.0, "per_prompt_token_s": 0.0},
    "scheduler": {"batching": {"max_running_requests": 1}},
    "memory": {"num_gpu_blocks": 1000},
}


def poisson(rate_per_s):
    return {"name": "poisson", "rate_per_s": rate_per_s}


def service_s(prompt, output, folder):
    """How long a request takes that is alone."""
    workload = synthetic(poisson(1.0), prompt, output, requests=1)
    return float(run(merged(ONE_SLOT, {"workload": workload}), folder).requests["e2e_s"][0])


def in_ns(seconds):
    return np.rint(seconds * NS_PER_S).astype(np.int64)


def lindley_ns(arrival_ns, service_ns):
    """The wait of every customer of a single server (Lindley 1952)."""
    waits, wait = [], 0
    for gap, service in zip(
        np.diff(arrival_ns, prepend=arrival_ns[0]).tolist(), [0, *service_ns.tolist()], strict=False
    ):
        wait = max(0, wait + service - gap)
        waits.append(wait)
    return np.array(waits)


@pytest.mark.parametrize(("load", "requests"), [(0.3, 20_000), (0.6, 60_000), (0.9, 400_000)])
def test_fixed_lengths_wait_as_pollaczek_and_khinchine_say(load, requests, tmp_path):
    """M/D/1: the mean wait is load / (1 - load) / 2 service times."""
    service = service_s(64, 1, tmp_path)
    workload = synthetic(poisson(load / service), 64, 1, requests=requests)
    result = run(merged(ONE_SLOT, {"workload": workload, "seed": 11}), tmp_path)
    queue = result.summary["metrics"]["queue_s"]
    expected_s = load / (1 - load) / 2 * service
    low, high = queue["ci"]["mean"]
    assert low <= expected_s <= high
    assert low > 0.9 * expected_s, "too wide to tell an error of a tenth"
    assert high < 1.1 * expected_s, "too wide to tell an error of a tenth"
    assert result.summary["utilisation"]["busy_share"] == pytest.approx(load, rel=0.02)


def test_random_lengths_wait_as_pollaczek_and_khinchine_say(tmp_path):
    """M/G/1: the mean wait is rate * E[S^2] / 2 / (1 - load)."""
    load, outputs = 0.6, (1, 12)
    mean_s = np.mean([service_s(64, tokens, tmp_path) for tokens in range(outputs[0], outputs[1] + 1)])
    rate = load / mean_s
    workload = synthetic(poisson(rate), 64, outputs, requests=60_000)
    result = run(merged(ONE_SLOT, {"workload": workload, "seed": 5}), tmp_path)
    served_s = result.requests["end_s"] - result.requests["first_scheduled_s"]
    expected_s = rate * np.mean(served_s**2) / 2 / (1 - rate * served_s.mean())
    low, high = result.summary["metrics"]["queue_s"]["ci"]["mean"]
    assert 0.9 * expected_s < low <= expected_s <= high < 1.1 * expected_s
    assert result.summary["utilisation"]["busy_share"] == pytest.approx(load, rel=0.02)


@pytest.mark.parametrize("replicas", [1, 3])
def test_every_single_wait_is_the_one_of_lindley_to_the_nanosecond(replicas, tmp_path):
    workload = synthetic(poisson(replicas * 220.0), (1, 200), (1, 6), requests=6000)
    scenario = merged(ONE_SLOT, {"workload": workload, "cluster": {"replicas": replicas}})
    requests = run(scenario, tmp_path).requests
    assert (requests["queue_s"] > 0).mean() > 0.3
    for replica in range(replicas):
        assert (requests["replica"][replica::replicas] == replica).all()
        own = {name: column[replica::replicas] for name, column in requests.items()}
        served_ns = in_ns(own["end_s"]) - in_ns(own["first_scheduled_s"])
        assert (in_ns(own["queue_s"]) == lindley_ns(in_ns(own["arrival_s"]), served_ns)).all()
        shapes = np.stack([own["prompt_tokens"], own["output_tokens"]], axis=1)
        _, shape = np.unique(shapes, axis=0, return_inverse=True)
        for kind in np.unique(shape):
            assert np.ptp(served_ns[shape.ravel() == kind]) == 0, "the same request takes the same time"


def test_littles_law_joins_the_two_tables(tmp_path):
    """Requests in the system, averaged over time, are the rate of arrival times the mean time in the system."""
    workload = synthetic(poisson(9.0), (100, 1900), (10, 390), requests=3000)
    scenario = {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm", "replicas": 2}, "workload": workload}
    for changes in ({}, {"scheduler": {"batching": {"max_running_requests": 6}}}):
        summary = run(merged(scenario, changes), tmp_path).summary
        rate_per_s = summary["counts"]["arrived"] / summary["run"]["simulated_s"]
        use = summary["utilisation"]
        in_system = use["mean_running_requests"] + use["mean_waiting_requests"]
        assert in_system == pytest.approx(rate_per_s * summary["metrics"]["e2e_s"]["mean"], rel=1e-9)
        assert use["mean_waiting_requests"] == pytest.approx(
            rate_per_s * summary["metrics"]["queue_s"]["mean"], rel=1e-9
        )
    assert use["mean_waiting_requests"] > 1


def test_littles_law_holds_in_the_steps_table_when_all_arrive_at_once(tmp_path):
    """No request arrives within a row, so the rows tell exactly how many are in the system, preempted ones too."""
    rows = [(0.0, 100 + 37 * index % 800, 20 + 53 * index % 300) for index in range(200)]
    scenario = {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "h100-sxm"},
        "host": {"request_s": 0.0, "per_prompt_token_s": 0.0},
        "workload": {"rows": rows},
        "memory": {"num_gpu_blocks": 1500},
    }
    result = run(scenario, tmp_path)
    requests, steps = result.requests, result.steps
    in_system = steps["running_requests"] + steps["waiting_requests"]
    span_ns = in_ns(steps["end_s"]) - in_ns(steps["start_s"])
    assert (in_system * span_ns).sum() == (in_ns(requests["end_s"]) - in_ns(requests["arrival_s"])).sum()
    assert requests["preemptions"].sum() > 0
    # Waiting counts waits after preemption, which the time to the first step does not tell.
    end_s, waiting = result.summary["run"]["simulated_s"], result.summary["utilisation"]["mean_waiting_requests"]
    assert waiting == pytest.approx((steps["waiting_requests"] * span_ns).sum() / NS_PER_S / end_s, rel=1e-9)
    assert waiting > 1.002 * requests["queue_s"].sum() / end_s


@pytest.mark.parametrize("concurrency", [1, 8, 64, 256])
def test_a_closed_loop_stays_below_the_roofline(concurrency, tmp_path):
    """Bounds from the datasheet of the H100 SXM and the model card of Llama 3.1 8B, at 100% efficiency."""
    peak_flops_per_s, bandwidth_bytes_per_s = 989.4e12, 3.35e12
    parameters, embedding, kv_bytes_per_token = 8_030_261_248, 128_256 * 4096, 131_072
    weights = parameters - embedding
    prompt, output = 500, 200
    arrivals = {"name": "closed-loop", "concurrency": concurrency}
    workload = synthetic(arrivals, prompt, output, requests=max(10, 6 * concurrency))
    scenario = {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm"}, "workload": workload}
    summary = run(scenario, tmp_path).summary
    # A decode step reads all weights once and, for each of its requests, at least the prompt's keys and values.
    step_bytes = 2 * weights + concurrency * prompt * kv_bytes_per_token
    memory_bound = concurrency * bandwidth_bytes_per_s / step_bytes * output / (output - 1)
    compute_bound = peak_flops_per_s / (2 * weights * (prompt + output - 1)) * output
    rate = summary["throughput"]["output_tokens_per_s"]
    assert rate <= min(memory_bound, compute_bound)
    assert rate >= 0.3 * min(memory_bound, compute_bound), "a bound so far away would prove nothing"
    assert summary["utilisation"]["mfu"] < 1
    assert summary["utilisation"]["mbu"] < 1


def test_the_model_flops_are_those_that_the_requests_need_however_they_are_batched(tmp_path):
    """Llama 3.1 8B by hand: two operations per weight and token, and four per head dimension of each attended pair."""
    layers, hidden, key_value, intermediate, vocabulary = 32, 4096, 1024, 14336, 128256
    weights = layers * (2 * hidden * hidden + 2 * hidden * key_value + 3 * hidden * intermediate)
    workload = synthetic(poisson(8.0), (1, 3000), (1, 300), requests=200)
    scenario = {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm"}, "workload": workload}
    for changes in ({}, {"scheduler": {"batching": {"max_batched_tokens": 300}}}, {"cluster": {"replicas": 2}}):
        result = run(merged(scenario, changes), tmp_path)
        prompts, outputs = result.requests["prompt_tokens"], result.requests["output_tokens"]
        tokens = prompts + outputs - 1  # the last token is not fed back
        flops = 2 * weights * tokens.sum() + 2 * hidden * vocabulary * outputs.sum()
        flops += 4 * hidden * layers * (tokens * (tokens + 1) // 2).sum()
        replicas = changes.get("cluster", {}).get("replicas", 1)
        available = 989.4e12 * result.summary["run"]["simulated_s"] * replicas
        assert result.summary["utilisation"]["mfu"] == pytest.approx(flops / available, rel=1e-9)
