"""How much is given, by hand."""

from policies.output_limit.by_queue import ByQueue
from tests.policies.admission.test_admission_policies import Sent, Service


def test_outputs_are_bounded_while_many_wait_but_for_those_that_are_spared():
    policy = ByQueue(waiting_requests=3, tokens=8, from_priority=1)
    given = [policy.most_tokens(Sent(priority=level), Service(waiting)) for waiting in (2, 3) for level in (0, 1)]
    assert given == [None, None, None, 8]
