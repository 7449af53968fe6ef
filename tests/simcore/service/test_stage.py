"""Who is picked while some replicas take no requests."""

from types import SimpleNamespace

import pytest

from policies.registry import policy_class
from simcore.core.request import Request
from simcore.service.stage import ABSENT, Stage


class Limits:
    """Serves everything."""

    def refusal(self, request, output_tokens):
        return None


class View:
    """A replica without anything to do."""

    waiting_requests = running_requests = waiting_tokens = running_tokens = 0

    def cached_tokens(self, request):
        return 0

    def prefix_keys(self, request):
        return ()


@pytest.fixture
def stage(request, monkeypatch):
    monkeypatch.setattr("simcore.service.stage.ReplicaAsRouted", lambda replica: View())
    replicas = [SimpleNamespace(requests=SimpleNamespace(by_number={})) for _ in range(4)]
    return Stage(replicas, [Limits()] * 4, policy_class("routing", request.param)())


def picked(stage, number):
    request = Request(number, 0, 10)
    return stage.pick(request, stage.refusals(request, 5))


EVERY = ["round-robin", "random", "least-requests", "least-tokens", "power-of-two", "session-sticky", "slo-aware"]


@pytest.mark.parametrize("stage", EVERY, indirect=True)
def test_those_that_are_open_are_picked_evenly(stage):
    stage.close(1, ABSENT)
    stage.close(2, "for another reason")
    places = [picked(stage, number) for number in range(400)]
    assert set(places) == {0, 3}
    assert 140 < places.count(0) < 260
    stage.open_fully(1)
    assert {picked(stage, number) for number in range(400, 800)} == {0, 1, 3}


@pytest.mark.parametrize("stage", ["least-requests"], indirect=True)
def test_a_replica_is_open_when_no_reason_is_left(stage):
    stage.close(0, ABSENT)
    stage.close(0, "crashed")
    assert stage.is_vacant(0)
    stage.open(0, ABSENT)
    assert not stage.is_up(0)
    stage.open(0, "crashed")
    assert stage.is_up(0)
    for place in range(4):
        stage.close(place, ABSENT)
    assert picked(stage, 0) is None
    assert not stage.any_up
