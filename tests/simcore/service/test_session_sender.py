"""Requests of sessions are sent when those that they wait for have ended, and only then."""

import numpy as np
import pytest

from simcore.build.simulation import Simulation
from simcore.cost.assumptions import HostOverhead
from simcore.service.api_server import ApiServer
from simcore.service.clock import Clock
from simcore.service.session_sender import SessionSender
from tests.e2e.scenarios import differences

UNIFORM = {"name": "uniform", "low": 1, "high": 40}
CHAT = {
    "name": "chat",
    "turns": {"name": "uniform", "low": 1, "high": 6},
    "think_time_s": {"name": "exponential", "mean_s": 0.3},
}
AGENTS = {"name": "agents", "fan_out": {"name": "uniform", "low": 1, "high": 3}, "depth": 2, "join": True}
WORKLOAD = {
    "requests": 120,
    "arrivals": {"name": "poisson", "rate_per_s": 40.0},
    "prompt_tokens": UNIFORM,
    "output_tokens": UNIFORM,
    "session": CHAT,
}
CLOSED = {"arrivals": {"name": "closed-loop", "concurrency": 3, "think_time_s": 0.25}}
SCENARIO = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "l4"},
    "scheduler": {"batching": {"max_batched_tokens": 2048}},
    "workload": WORKLOAD,
}


def prepare(tmp_path, scenario=None, **workload):
    return Simulation.prepare({**SCENARIO, **(scenario or {}), "workload": {**WORKLOAD, **workload}}, tmp_path)


def by_number(result):
    order = np.argsort(result.requests["request_id"])
    return {name: column[order] for name, column in result.requests.items()}


def check_times(simulation, requests):
    """Every request arrived its delay after the last end of those that it waits for."""
    follow_ups = simulation.workload.follow_ups
    place = {number: row for row, number in enumerate(requests["request_id"].tolist())}
    latest = np.zeros(len(follow_ups))
    for before, row in place.items():
        for follower in follow_ups.followers[follow_ups.offsets[before] : follow_ups.offsets[before + 1]]:
            latest[follower] = max(latest[follower], requests["end_s"][row])
    for number, row in place.items():
        if follow_ups.waits_for[number]:
            due_s = latest[number] + follow_ups.delay_ns[number] / 1e9
            assert requests["arrival_s"][row] == pytest.approx(due_s, abs=1e-8)


@pytest.mark.parametrize("session", [CHAT, AGENTS, {**AGENTS, "join": False}])
@pytest.mark.parametrize("arrivals", [{}, CLOSED])
def test_a_request_is_sent_when_its_time_has_come(tmp_path, session, arrivals):
    simulation = prepare(tmp_path, session=session, **arrivals)
    result = simulation.run(check=True)
    assert result.summary["counts"]["finished"] == 120
    assert result.summary["notices"] == []
    assert (np.diff(result.requests["arrival_s"]) >= 0).all()
    check_times(simulation, by_number(result))
    if not arrivals:
        begins = simulation.workload.follow_ups.begins
        expected = simulation.workload.requests.arrival_ns[begins] / 1e9
        assert by_number(result)["arrival_s"][begins].tolist() == expected.tolist()


def test_a_user_is_in_one_session_at_a_time(tmp_path):
    simulation = prepare(tmp_path, session={**AGENTS, "join": False}, **CLOSED)
    requests, follow_ups = by_number(simulation.run()), simulation.workload.follow_ups
    starts_s = requests["arrival_s"][follow_ups.begins]
    ends_s = np.zeros(len(starts_s))
    np.maximum.at(ends_s, follow_ups.session, requests["end_s"])
    assert starts_s[:3].tolist() == [0.0, 0.0, 0.0]
    # Each later session begins a pause after some other one, another each time, is over.
    assert np.allclose(np.sort(starts_s[3:]), np.sort(ends_s + 0.25)[: len(starts_s) - 3], atol=1e-8)


@pytest.mark.parametrize("session", [CHAT, AGENTS])
@pytest.mark.parametrize("arrivals", [{}, CLOSED])
def test_after_a_rejection_nothing_that_waits_for_it_is_sent(tmp_path, session, arrivals):
    simulation = prepare(tmp_path, {"max_context_tokens": 150}, session=session, **arrivals)
    result = simulation.run()
    follow_ups = simulation.workload.follow_ups
    waits_for = [set() for _ in range(120)]
    for before in range(120):
        for follower in follow_ups.followers[follow_ups.offsets[before] : follow_ups.offsets[before + 1]]:
            waits_for[follower].add(before)
    too_long = simulation.workload.requests.prompt_tokens + simulation.workload.requests.output_tokens > 150
    never = set()
    for place in range(120):
        if any(before in never or too_long[before] for before in waits_for[place]):
            never.add(place)
    assert never
    assert set(range(120)) - never == set(result.requests["request_id"].tolist())
    assert result.summary["counts"]["rejected"] == sum(too_long[place] for place in set(range(120)) - never)
    sentence = f"{len(never)} requests of sessions were never sent, as one before them was turned away."
    assert result.summary["notices"] == [sentence]


@pytest.mark.parametrize(
    "scenario", [{}, {"cluster": {"accelerator": "l4", "replicas": 2}}, {"memory": {"num_gpu_blocks": 30}}]
)
@pytest.mark.parametrize("session", [CHAT, AGENTS])
@pytest.mark.parametrize("arrivals", [{}, CLOSED])
def test_jumping_gives_the_same_bits_as_stepping(tmp_path, scenario, session, arrivals):
    simulation = prepare(tmp_path, scenario, session=session, **arrivals)
    jumping, stepping = simulation.run(check=True), simulation.run(fast_forward=False, check=True)
    assert differences(jumping, stepping) == []


def test_requests_bring_their_content(tmp_path):
    class Listener:
        def __init__(self):
            self.received = []

        def receive(self, request, output_tokens):
            self.received.append((request, output_tokens))
            request.done(True)

    tenants = [{"name": "a", "share": 0.5, "priority": 2}, {"name": "b", "share": 0.5, "max_output_tokens": 9}]
    workload = prepare(tmp_path, tenants=tenants).workload
    clock, listener, told = Clock(), Listener(), []
    SessionSender(clock, workload, ApiServer(HostOverhead()), listener, told.append).start()
    clock.run()
    contents = list(workload.requests.contents)
    assert sorted(request.number for request, _ in listener.received) == list(range(120))
    for request, output_tokens in listener.received:
        content = contents[request.number]
        assert request.content == content
        assert sum(run.tokens for run in content.prompt) == request.prompt_tokens
        assert output_tokens == workload.requests.output_tokens[request.number]
        assert (request.tenant, request.priority) == ("ab"[workload.requests.tenant[request.number]],) + (
            (2,) if request.tenant == "a" else (0,)
        )
        assert (request.max_output_tokens == 9) == (request.tenant == "b")
