"""A scenario that takes milliseconds and still has a queue."""

import pytest


@pytest.fixture
def document():
    return {
        "model": "smollm2-135m",
        "cluster": {"accelerator": "l4"},
        "workload": {
            "requests": 150,
            "arrivals": {"name": "poisson", "rate_per_s": 120},
            "prompt_tokens": {"name": "uniform", "low": 20, "high": 90},
            "output_tokens": {"name": "uniform", "low": 5, "high": 60},
        },
        "slo": {"ttft_s": {"p99": 0.1}},
    }
