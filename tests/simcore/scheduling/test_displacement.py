"""Running requests whose keys are followed are displaced just as if all keys were taken anew in every step."""

from unittest.mock import patch

import pytest
from hypothesis import given, settings

from policies.batching.chunked_prefill import ChunkedPrefill
from policies.ordering import Ordering
from policies.ordering.mlfq import MultiLevelFeedbackQueue
from policies.ordering.srpt import ShortestRemainingFirst
from policies.preemption.latest import Latest
from simcore.core.request import Request
from simcore.memory.block_manager import KVBlockManager
from simcore.scheduling.config import SchedulerConfig
from simcore.scheduling.running_keys import FollowedKeys
from simcore.scheduling.scheduler import Scheduler
from tests.e2e.scenarios import differences, run
from tests.e2e.test_policies_fast_forward import crowded_scenarios


@pytest.mark.parametrize(("name", "policy"), [("srpt", ShortestRemainingFirst), ("mlfq", MultiLevelFeedbackQueue)])
def test_followed_keys_choose_the_same_victims(name, policy, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    followed = []

    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(scenario=crowded_scenarios("ordering", name))
    def agree(scenario):
        with patch.object(FollowedKeys, "least_urgent", autospec=True, side_effect=FollowedKeys.least_urgent) as asked:
            following = run(scenario, folder, check=True)
        with (
            patch.object(policy, "foresees_rises", False),
            patch.object(policy, "tokens_until_rise", Ordering.tokens_until_rise),
        ):
            anew = run(scenario, folder, fast_forward=False, check=True)
        assert differences(following, anew) == []
        followed.append(asked.call_count)

    agree()
    assert sum(followed) > 10, "the scenarios that were drawn must displace requests"


def test_a_starving_request_is_promoted_and_displaces_another(tmp_path):
    """A stream of short requests keeps a long one out, unless it is promoted."""
    rows = [(0.0, 400, 60), *((0.01 + 0.004 * index, 10, 6) for index in range(200))]

    def waits_s(starvation_s):
        ordering = {"name": "mlfq", "quantum_tokens": 4, "starvation_s": starvation_s}
        scenario = {
            "model": "smollm2-135m",
            "cluster": {"accelerator": "h100-sxm"},
            "scheduler": {"ordering": ordering, "batching": {"name": "chunked-prefill", "max_running_requests": 1}},
            "workload": {"rows": rows},
        }
        jumping, stepping = run(scenario, tmp_path), run(scenario, tmp_path, fast_forward=False)
        assert differences(jumping, stepping) == []
        return jumping.requests["e2e_s"][0]

    never, soon = waits_s(None), waits_s(0.05)
    assert soon < 0.7 * never


class Estimated(Ordering):
    """Sorts by estimates that a test changes."""

    preemptive = True

    def __init__(self, **estimates):
        self.estimates = estimates

    def key(self, request, now_s):
        return (self.estimates[request.tenant],)


def test_whoever_is_displaced_stands_behind_the_one_that_displaced_it():
    """An estimate that has fallen since its request was put in its place gives no claim, or both would take turns."""
    ordering = Estimated(runs=5, waits=9)
    memory = KVBlockManager(100, 16)
    scheduler = Scheduler(SchedulerConfig(ordering, ChunkedPrefill(max_running_requests=1), Latest()), memory)
    scheduler.submit(Request(0, 0, 10, tenant="runs"), 0)
    assert scheduler.plan(0).admitted == 1
    scheduler.submit(Request(1, 0, 10, tenant="waits"), 0)
    ordering.estimates["waits"] = 3
    plan = scheduler.plan(0)
    assert (list(plan.preempted), list(scheduler.state.running)) == ([], [0])
    scheduler.submit(Request(2, 0, 10, tenant="waits"), 0)
    plan = scheduler.plan(0)
    assert ([request.number for request in plan.preempted], list(scheduler.state.running)) == ([0], [2])
