"""Running requests whose keys are followed are displaced just as if all keys were taken anew in every step."""

from unittest.mock import patch

import pytest
from hypothesis import given, settings

from policies.ordering import Ordering
from policies.ordering.mlfq import MultiLevelFeedbackQueue
from policies.ordering.srpt import ShortestRemainingFirst
from simcore.scheduling.displacement import _FollowedKeys
from tests.e2e.scenarios import differences, run
from tests.e2e.test_policies_fast_forward import crowded_scenarios


@pytest.mark.parametrize(("name", "policy"), [("srpt", ShortestRemainingFirst), ("mlfq", MultiLevelFeedbackQueue)])
def test_followed_keys_choose_the_same_victims(name, policy, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    followed = []

    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(scenario=crowded_scenarios("ordering", name))
    def agree(scenario):
        with patch.object(
            _FollowedKeys, "least_urgent", autospec=True, side_effect=_FollowedKeys.least_urgent
        ) as asked:
            following = run(scenario, folder, check=True)
        with patch.object(policy, "tokens_until_rise", Ordering.tokens_until_rise):
            anew = run(scenario, folder, fast_forward=False, check=True)
        assert differences(following, anew) == []
        followed.append(asked.call_count)

    agree()
    assert sum(followed) > 100


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
