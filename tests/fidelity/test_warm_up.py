"""Warm-up requests that are answered in full change nothing of what comes after, so scenarios leave them out."""

import numpy as np

from simcore.build.simulation import Simulation

SCENARIO = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "l4"},
    "memory": {"prefix_caching": False},
}


def stream(requests, rate_per_s):
    length = {"name": "fixed", "tokens": 64}
    arrivals = {"name": "constant", "rate_per_s": rate_per_s}
    return {"requests": requests, "arrivals": arrivals, "prompt_tokens": length, "output_tokens": length}


def test_an_idle_server_keeps_nothing_of_earlier_requests(tmp_path):
    burst = stream(1, 0.01)
    warm = {**SCENARIO, "workload": {"streams": [stream(6, 1e4), *[burst] * 8]}}
    cold = {**SCENARIO, "workload": {"streams": [burst] * 8}}
    results = [Simulation.prepare(document, tmp_path).run() for document in (warm, cold)]
    for metric in ("ttft_s", "tpot_s", "e2e_s"):
        after, alone = (result.requests[metric][-8:] for result in results)
        assert np.array_equal(after, alone)
