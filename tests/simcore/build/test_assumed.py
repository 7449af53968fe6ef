"""What is taken for granted is told."""

import pytest

from servetwin import simulate

BASE = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "h100-sxm"},
    "workload": {
        "requests": 20,
        "arrivals": {"name": "constant", "rate_per_s": 20},
        "prompt_tokens": {"name": "fixed", "tokens": 20},
        "output_tokens": {"name": "fixed", "tokens": 10},
    },
}
TWO = {"tenants": [{"name": "a", "share": 0.5}, {"name": "b", "share": 0.5}]}
LIMITED = {"max_output_tokens": 50}
BY_TOKENS = [{"name": "token-bucket", "unit": "tokens", "burst": 1e6, "rate_per_s": 1e6}]
WHOLE = "scheduler.admission.0 counts requests without max_output_tokens as if each filled the whole context."


def notices(scheduler, senders=None):
    return simulate(BASE | {"scheduler": scheduler, "workload": BASE["workload"] | (senders or {})}).summary["notices"]


@pytest.mark.parametrize("name", ["sjf", "srpt"])
def test_the_true_length_is_told(name):
    said = f"scheduler.ordering {name!r} knows every true output length (predictor oracle), as no service does."
    assert said in notices({"ordering": name})
    assert not [it for it in notices({"ordering": {"name": name, "predictor": "class-mean"}}) if "true output" in it]


@pytest.mark.parametrize("name", ["vtc", "drr", "wfq", "drf"])
def test_one_tenant_alone_is_told(name):
    said = f"scheduler.ordering {name!r} divides service among tenants, of which there is one."
    assert said in notices({"ordering": name})
    assert said in notices({"ordering": name}, {"tenant": "a"})
    assert said not in notices({"ordering": name}, TWO)


def test_a_limit_on_tokens_without_limits_of_outputs_is_told():
    assert WHOLE in notices({"admission": BY_TOKENS})
    assert WHOLE not in notices({"admission": BY_TOKENS}, LIMITED)
    assert not notices({"admission": ["token-bucket"]})
    longest = notices({"ordering": {"name": "sjf", "predictor": "max-tokens"}})
    assert longest == [
        "scheduler.ordering counts requests without max_output_tokens as if each filled the whole context."
    ]


def test_fcfs_assumes_nothing():
    assert notices({"ordering": "fcfs"}) == []


def context_warnings(overrides):
    """Of a 70B model in fp8 on one GPU of 80 GB, which has room for a few thousand tokens."""
    scenario = BASE | {"model": "llama-3.1-70b", "precision": {"weights": "fp8"}}
    result = simulate(scenario, overrides=overrides)
    found = [warning for warning in result.summary["warnings"] if "whole context" in warning]
    return found, result.summary["kv"]["capacity_tokens_per_replica"]


def test_a_context_that_memory_has_no_room_for_is_told_with_the_longest_that_fits():
    (told,), room = context_warnings([])
    assert room < 10_000
    assert told.startswith("A request of the whole context, 131,072 tokens, does not fit the KV memory of a replica")
    assert f"the longest that fits is {room:,} tokens (max_context_tokens)" in told
    assert context_warnings([f"max_context_tokens={room}"])[0] == []
    (told,), _ = context_warnings([f"max_context_tokens={room + 1}"])
    assert f"the longest that fits is {room:,} tokens" in told


def test_blocks_that_are_given_are_looked_at_too():
    (told,), _ = context_warnings(["memory.num_gpu_blocks=101"])
    assert "the longest that fits is 1,600 tokens" in told


def test_the_price_of_adapters_is_told_to_be_no_measured_one():
    said = [it for it in simulate(BASE | {"adapters": {"count": 2}}).summary["notices"] if "Adapters" in it]
    assert said == ["Adapters are priced by roofline, whatever prices the other kernels; no figure was measured."]
