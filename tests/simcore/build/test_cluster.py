"""What the replicas of a cluster have in common is found once, however many there are."""

from collections import Counter

import pytest

from servetwin.api import prepare
from simcore.workload import building

SCENARIO = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "h100-sxm"},
    "workload": {
        "requests": 5,
        "arrivals": {"name": "poisson", "rate_per_s": 10.0},
        "prompt_tokens": {"name": "fixed", "tokens": 20},
        "output_tokens": {"name": "fixed", "tokens": 5},
    },
}


@pytest.fixture
def calls(monkeypatch):
    """How often a first batch of requests was looked for."""
    counted: Counter[str] = Counter()

    def count(module, name):
        inner = getattr(module, name)

        def counting(*arguments, **named):
            counted[name] += 1
            return inner(*arguments, **named)

        monkeypatch.setattr(module, name, counting)

    count(building.SyntheticOpenLoop, "batches")
    return counted


def calls_of_a_run(replicas, calls):
    calls.clear()
    prepare(SCENARIO, [f"cluster.replicas={replicas}"]).run()
    return dict(calls)


def test_the_cost_of_a_replica_holds_nothing_that_all_have_in_common(calls):
    calls_of_a_run(1, calls)  # whose policies are new
    of_two = calls_of_a_run(2, calls)
    assert of_two["batches"] > 0
    assert calls_of_a_run(50, calls) == of_two
