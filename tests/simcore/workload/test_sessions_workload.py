"""Sessions: turns and agents whose prompts go on from earlier ones."""

from itertools import pairwise
from typing import Any

import numpy as np
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.errors import InputError
from simcore.core.validation import explain
from simcore.workload import Sessions
from simcore.workload.durations import ExponentialTime, LognormalTime, UniformTime
from tests.simcore.workload.contents_model import Scenario, build, texts

POISSON = {"name": "poisson", "rate_per_s": 10.0}
UNIFORM = {"name": "uniform", "low": 1, "high": 20}
RANDOM = {"requests": 60, "arrivals": POISSON, "prompt_tokens": UNIFORM, "output_tokens": UNIFORM}
SYSTEM_PROMPT = {"name": "shared", "tokens": {"name": "fixed", "tokens": 9}}
CHAT = {
    "name": "chat",
    "turns": {"name": "uniform", "low": 1, "high": 6},
    "think_time_s": {"name": "exponential", "mean_s": 5.0},
}
AGENTS = {"name": "agents", "fan_out": {"name": "uniform", "low": 1, "high": 3}, "depth": 2}
session_configs = st.one_of(
    st.builds(lambda high: {**CHAT, "turns": {"name": "uniform", "low": 1, "high": high}}, st.integers(1, 8)),
    st.builds(
        lambda high, depth, join: {
            **AGENTS, "fan_out": {"name": "uniform", "low": 1, "high": high}, "depth": depth, "join": join,
        },
        st.integers(1, 3), st.integers(1, 3), st.booleans(),
    ),
)  # fmt: skip


def waits(workload: Sessions) -> list[list[int]]:
    """The places of the requests for which each waits."""
    found: list[list[int]] = [[] for _ in range(len(workload.requests))]
    offsets = workload.follow_ups.offsets.tolist()
    for place, (start, end) in enumerate(pairwise(offsets)):
        for follower in workload.follow_ups.followers[start:end].tolist():
            found[follower].append(place)
    assert [len(row) for row in found] == workload.follow_ups.waits_for.tolist()
    return found


@settings(deadline=None)
@given(session_configs, st.integers(1, 60), st.integers(0, 2**40), st.booleans())
def test_prompts_go_on_from_those_before_and_nothing_else_is_shared(session, requests, seed, system_prompt):
    prefix = [SYSTEM_PROMPT] if system_prompt else []
    workload = build(None, seed, **RANDOM | {"requests": requests}, session=session, prefix=prefix)
    assert isinstance(workload, Sessions)
    assert len(workload.requests) == requests
    sent, of_session, waited = texts(workload.requests), workload.follow_ups.session, waits(workload)
    shared = set(sent[0][0][:9]) if system_prompt else set()
    owners: dict[int, set[int]] = {}
    for place, (prompt, output) in enumerate(sent):
        for token in set(prompt + output) - shared:
            owners.setdefault(token, set()).add(int(of_session[place]))
        assert all(of_session[before] == of_session[place] and before < place for before in waited[place])
        assert len(set(prompt)) == len(prompt)
        assert len(prompt) == workload.requests.prompt_tokens[place]
        # The answers that it waited for are in its prompt, and its own tokens and answer are new in the session.
        for before in waited[place]:
            assert set(sent[before][1]) <= set(prompt)
        if len(waited[place]) == 1 and not session.get("join"):
            (before,) = waited[place]
            so_far = sent[before][0] + sent[before][1]
            assert prompt[: len(so_far)] == so_far
            assert 1 <= len(prompt) - len(so_far) <= 20
            earlier = {token for other in range(place) for token in sent[other][0] + sent[other][1]}
            assert not earlier & set(prompt[len(so_far) :] + output)
    assert all(len(sessions) == 1 for sessions in owners.values())


def test_a_chat_is_a_chain(tmp_path):
    workload = build(tmp_path, **RANDOM, session=CHAT, prefix=[SYSTEM_PROMPT])
    session = workload.follow_ups.session
    for place, before in enumerate(waits(workload)):
        assert before == ([place - 1] if place and session[place - 1] == session[place] else [])
    # A conversation is one run after the system prompt, however long it is.
    assert max(len(content.prompt) for content in workload.requests.contents) == 2
    assert (workload.follow_ups.delay_ns[workload.follow_ups.begins] == 0).all()
    assert set(np.diff(workload.requests.arrival_ns[session == 0])) <= {0}


def test_agents_join(tmp_path):
    fan_out = {"name": "fixed", "tokens": 2}
    workload = build(tmp_path, **RANDOM | {"requests": 10}, session={**AGENTS, "fan_out": fan_out, "join": True})
    assert waits(workload) == [[], [0], [0], [1], [1], [2], [2], [3, 4], [5, 6], [7, 8]]
    sent = texts(workload.requests)
    for place, (prompt, _) in enumerate(sent[7:], start=7):
        parent, *answers = {7: (1, 3, 4), 8: (2, 5, 6), 9: (0, 7, 8)}[place]
        so_far = sum((sent[part][1] for part in (parent, *answers)), sent[parent][0])
        assert prompt[: len(so_far)] == so_far


def test_the_same_seed_gives_the_same_bytes_and_fewer_requests_the_same_first_ones(tmp_path):
    for session in (CHAT, {**AGENTS, "join": True}):
        one, again, other = (build(tmp_path, seed, **RANDOM, session=session) for seed in (3, 3, 4))
        assert one.requests.contents == again.requests.contents != other.requests.contents
        for name in ("offsets", "followers", "waits_for", "delay_ns", "session"):
            assert getattr(one.follow_ups, name).tobytes() == getattr(again.follow_ups, name).tobytes()
        fewer = build(tmp_path, 3, **RANDOM | {"requests": 31}, session=session)
        assert fewer.requests.contents == one.requests.contents.at(slice(31))


def test_sessions_arrive_for_a_duration(tmp_path):
    bounds = {"requests": None, "duration_s": 20.0}
    workload = build(tmp_path, **RANDOM | bounds, session=CHAT)
    begins = workload.follow_ups.begins
    assert 120 < len(begins) < 280
    assert (np.diff(workload.requests.arrival_ns) >= 0).all()
    assert workload.requests.arrival_ns[-1] < 20 * 10**9
    assert np.bincount(workload.follow_ups.session).max() == 6
    short = {"requests": None, "duration_s": 1e-6}
    with pytest.raises(InputError, match=r"^workload\.duration_s is 1e-06, expected long enough"):
        build(tmp_path, **RANDOM | short, session=CHAT)


def test_a_session_has_one_sender(tmp_path):
    tenants = [{"name": "a", "share": 0.5, "priority": 1}, {"name": "b", "share": 0.5, "max_output_tokens": 7}]
    workload = build(tmp_path, **RANDOM, session=CHAT, tenants=tenants)
    sent = workload.requests
    pairs = set(zip(workload.follow_ups.session.tolist(), sent.tenant.tolist(), strict=True))
    assert len(pairs) == len(workload.follow_ups.begins)
    assert sent.output_tokens[sent.tenant == 1].max() == 7
    # The next prompt has the answer as it was, ended at its limit.
    for place, before in enumerate(waits(workload)):
        for earlier in before:
            grown = sent.prompt_tokens[place] - sent.prompt_tokens[earlier] - sent.output_tokens[earlier]
            assert 1 <= grown <= 20


def test_users_in_a_closed_loop(tmp_path):
    arrivals = {"name": "closed-loop", "concurrency": 3, "think_time_s": 2.0}
    workload = build(tmp_path, **RANDOM | {"arrivals": arrivals}, session=CHAT)
    assert (workload.concurrency, workload.pause_ns, len(workload.requests)) == (3, 2 * 10**9, 60)
    with pytest.raises(InputError, match=r"^workload\.streams\.1\.arrivals\.name is 'closed-loop', expected arrivals"):
        build(tmp_path, streams=[RANDOM, {**RANDOM, "arrivals": arrivals, "session": CHAT}])


def test_sessions_among_streams(tmp_path):
    chat = {**RANDOM, "session": CHAT, "tenant": "chat"}
    agents = {**RANDOM, "session": {**AGENTS, "join": True}, "tenant": "agents"}
    merged = build(tmp_path, streams=[chat, {**RANDOM, "tenant": "plain"}, agents])
    assert isinstance(merged, Sessions)
    assert (np.diff(merged.requests.arrival_ns) >= 0).all()
    waited = waits(merged)
    for who, stream in enumerate((chat, None, agents)):
        own = np.flatnonzero(merged.requests.tenant == who)
        if stream is None:
            assert not any(waited[place] for place in own)
            continue
        alone = build(tmp_path, streams=[stream])
        assert [[int(np.searchsorted(own, before)) for before in waited[place]] for place in own] == waits(alone)
        assert np.array_equal(merged.follow_ups.delay_ns[own], alone.follow_ups.delay_ns)
        shift = {
            new - old
            for place, content in zip(own, alone.requests.contents, strict=True)
            for new, old in zip(
                [run.first for run in merged.requests.contents.of(place).prompt],
                [run.first for run in content.prompt],
                strict=True,
            )
        }
        assert len(shift) == 1
    assert len(np.unique(merged.follow_ups.session)) == sum(not before for before in waited)


def test_times_follow_their_distributions():
    uniform = np.random.default_rng(0).random(200_000)
    assert ExponentialTime(5.0).quantile(uniform).mean() == pytest.approx(5.0, rel=0.02)
    assert np.median(LognormalTime(3.0, 1.0, 1e6).quantile(uniform)) == pytest.approx(3.0, rel=0.02)
    bounded = LognormalTime(3.0, 2.0, 10.0).quantile(uniform)
    assert 9.9 < bounded.max() <= 10.0
    assert np.ptp(UniformTime(1.0, 2.0).quantile(uniform)) == pytest.approx(1.0, abs=1e-3)
    assert LognormalTime(3.0, 2.0, 10.0).quantile(np.zeros(1)).tolist() == [0.0]


def without(section: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in section.items() if name != key}


REJECTED = [
    ({**CHAT, "name": "chats"}, "workload.session.name is 'chats', expected one of agents, chat."),
    ({**CHAT, "turn": 3}, "workload.session.turn is an unknown field"),
    (without(CHAT, "think_time_s"), "workload.session.think_time_s is missing"),
    (
        {**CHAT, "turns": {"name": "lognormal", "median": 4, "sigma": 1}},
        "workload.session.turns is a mapping of name, median, sigma, expected at most 10000 turns, not 2147483647.",
    ),
    ({**AGENTS, "depth": 9}, "expected trees of at most 10000 requests, not 29524."),
    ({**AGENTS, "depth": 33}, "workload.session.depth is 33, expected a whole number of at least 1 and of at most 32"),
    ({**CHAT, "think_time_s": {"name": "fixed", "time_s": -1}}, "workload.session.think_time_s.time_s is -1"),
    ({**CHAT, "think_time_s": {"name": "uniform", "low_s": 2, "high_s": 1}}, "expected low_s no greater than high_s"),
    (
        {**CHAT, "think_time_s": {"name": "lognormal", "median_s": 2, "sigma": 1, "max_s": 1}},
        "expected median_s no greater than max_s, not 2 and 1.",
    ),
]


@pytest.mark.parametrize(("session", "expected"), REJECTED)
def test_bad_input_is_one_sentence(session, expected):
    with pytest.raises(pydantic.ValidationError) as caught:
        Scenario(workload={**RANDOM, "session": session})
    assert expected in str(explain(caught.value, Scenario))


def test_a_written_scenario_reads_back():
    scenario = Scenario(workload={**RANDOM, "session": AGENTS, "prefix": [SYSTEM_PROMPT]})
    assert Scenario.model_validate(scenario.model_dump(mode="json", exclude_none=True)) == scenario
