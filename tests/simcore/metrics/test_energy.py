"""Power is that of an idle device, and more by what it computes and moves."""

import pytest

from servetwin.api import prepare
from simcore.metrics.energy import MEMORY_AT_FULL_RATE, PRODUCTS_AT_LIMIT


def summary_of(rate_per_s=5.0, **cluster):
    return (
        prepare(
            {
                "model": "llama-3.1-8b",
                "cluster": {"accelerator": "h100-sxm", **cluster},
                "workload": {
                    "requests": 40,
                    "arrivals": {"name": "constant", "rate_per_s": rate_per_s},
                    "prompt_tokens": {"name": "fixed", "tokens": 500},
                    "output_tokens": {"name": "fixed", "tokens": 20},
                },
            }
        )
        .run()
        .summary
    )


IDLE_W, LIMIT_W = 70.0, 700.0


def test_power_follows_from_what_is_computed_and_moved():
    found = summary_of()
    use = found["utilisation"]
    share = use["mfu"] / PRODUCTS_AT_LIMIT + MEMORY_AT_FULL_RATE * use["mbu"]
    assert found["energy"]["mean_power_w"] == pytest.approx(IDLE_W + share * (LIMIT_W - IDLE_W))
    per_token = found["energy"]["mean_power_w"] / found["throughput"]["output_tokens_per_s"]
    assert found["energy"]["joules_per_output_token"] == pytest.approx(per_token)


def test_every_device_draws_at_least_what_it_draws_idle():
    slow = summary_of(rate_per_s=0.001, replicas=2, tensor_parallel=2)["energy"]["mean_power_w"]
    assert 4 * IDLE_W < slow < 4 * IDLE_W + 5


def test_no_device_draws_more_than_its_limit():
    assert summary_of(rate_per_s=10_000.0)["energy"]["mean_power_w"] <= LIMIT_W
