"""What a run says of its prices."""

import pytest

from servetwin.api import simulate

CHAT = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm"},
    "pricing": {"profile": "vllm-0.24.0"},
    "workload": {
        "requests": 20,
        "arrivals": {"name": "poisson", "rate_per_s": 5.0},
        "prompt_tokens": {"name": "fixed", "tokens": 500},
        "output_tokens": {"name": "fixed", "tokens": 50},
    },
}


@pytest.mark.parametrize(
    ("changes", "unmeasured"),
    [
        ({}, []),
        ({"precision": {"weights": "int8"}}, ["matrix products in int8"]),
        (
            {"model": "phi-3-mini"},
            [
                "prompt attention of head dimension 96 with bf16 KV",
                "decode attention of head dimension 96 with bf16 KV",
            ],
        ),
        ({"model": "mistral-7b"}, []),  # full attention stands in for its window
        (
            {"precision": {"kv_cache": "int8"}},
            ["prompt attention with int8 KV", "decode attention with int8 KV"],
        ),
        (
            {"model": "minimax-m2.5", "cluster": {"accelerator": "h100-sxm", "tensor_parallel": 4}},
            ["routers in fp32"],
        ),
        ({"model": "qwen3-30b-a3b", "precision": {"weights": "int8"}}, ["matrix products in int8", "experts in int8"]),
    ],
)
def test_a_run_names_the_kernels_that_the_profile_has_no_measurements_of(changes, unmeasured):
    summary = simulate(CHAT | changes).summary
    assert summary["pricing"]["unmeasured"] == unmeasured
    said = [warning for warning in summary["warnings"] if "no measurements of" in warning]
    assert len(said) == bool(unmeasured)
    assert all(name in said[0] for name in unmeasured)
