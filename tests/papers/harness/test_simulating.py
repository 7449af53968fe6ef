"""Scenarios laid over one another, and the search for a rate."""

import numpy as np
import pytest

from papers.harness.simulating import merged, poisson, run, sustained_rate
from simcore.core.errors import ServetwinError

SMALL = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "l4"},
    "workload": {
        "prompt_tokens": {"name": "uniform", "low": 20, "high": 90},
        "output_tokens": {"name": "uniform", "low": 2, "high": 10},
    },
}


def test_mappings_are_merged_and_policies_replaced():
    below = {"a": 1, "scheduler": {"ordering": "fcfs", "batching": {"name": "static", "max_running_requests": 2}}}
    above = {"scheduler": {"batching": {"name": "chunked-prefill"}}}
    assert merged(below, above) == {"a": 1, "scheduler": {"ordering": "fcfs", "batching": {"name": "chunked-prefill"}}}


@pytest.mark.parametrize("limit", [0.3, 1.0, 77.0])
def test_the_rate_is_found_to_the_precision(limit):
    def step(rate):
        return float("inf") if rate > limit else 0.0

    assert sustained_rate(step, 1.0, 1.05) == pytest.approx(limit, rel=0.05)
    assert sustained_rate(lambda rate: (rate / limit) ** 3, 1.0, 1.5) == pytest.approx(limit), "interpolated"


@pytest.mark.parametrize("excess", [0.5, 2.0])
def test_a_limit_that_no_rate_decides_is_told(excess):
    with pytest.raises(ServetwinError, match="The limit is"):
        sustained_rate(lambda rate: excess, 1.0, 1.05)


def test_arrivals_of_two_rates_are_the_same_but_for_scale():
    first, second = (
        run(merged(SMALL, {"workload": poisson(50, rate)}), 3).requests["arrival_s"] for rate in (1.0, 4.0)
    )
    np.testing.assert_allclose(first, 4 * second, atol=1e-6)
