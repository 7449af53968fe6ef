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
        ({"precision": {"weights": "int8"}}, ["GEMMs in int8"]),
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
        ({"model": "qwen3-30b-a3b", "precision": {"weights": "int8"}}, ["GEMMs in int8", "experts in int8"]),
    ],
)
def test_a_run_names_the_kernels_that_the_profile_has_no_measurements_of(changes, unmeasured):
    summary = simulate(CHAT | changes).summary
    assert summary["pricing"]["unmeasured"] == unmeasured
    said = [warning for warning in summary["warnings"] if "no measurements of" in warning]
    assert len(said) == bool(unmeasured)
    assert all(name in said[0] for name in unmeasured)


@pytest.mark.parametrize(
    ("weights", "profile", "slower"),
    [
        ("fp8", "vllm-0.24.0", ["experts in fp8"]),
        ("fp8", "vllm-0.19.0", []),
        ("fp8-block", "vllm-0.24.0", []),
        ("bf16", "vllm-0.24.0", []),
        ("int8", "vllm-0.24.0", []),  # which was not measured
    ],
)
def test_experts_that_were_measured_slower_than_in_bf16_are_warned_of(weights, profile, slower):
    changes = {"model": "qwen3-30b-a3b", "precision": {"weights": weights}, "pricing": {"profile": profile}}
    summary = simulate(CHAT | changes).summary
    assert summary["pricing"]["slower_than_bf16"] == slower
    said = [warning for warning in summary["warnings"] if "longer than in bf16" in warning]
    assert len(said) == len(slower)
    assert all(f"h100-sxm/{profile}, {name} take" in said[0] for name in slower)
