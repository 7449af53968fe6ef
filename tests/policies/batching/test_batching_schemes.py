"""The limits that batching schemes set; those of chunked-prefill are in test_built_in_policies.py."""

from dataclasses import replace

import pytest

from policies.batching.bucketed import Bucketed
from policies.batching.chunked_prefill import ChunkedPrefill
from policies.batching.chunked_prefill_first import ChunkedPrefillFirst
from policies.batching.decode_prefill_alternate import DecodePrefillAlternate
from policies.batching.dynamic import Dynamic
from policies.batching.in_flight import InFlight
from policies.batching.prefill_first import PrefillFirst
from policies.batching.queue_aware import QueueAware
from policies.batching.slo_feedback import SloFeedback
from policies.batching.static import Static
from policies.batching.waiting_served import WaitingServed
from policies.horizon import FOREVER
from tests.policies.views import FakeReplica, FakeRequest


@pytest.mark.parametrize(("running", "admits"), [(0, True), (1, False), (32, False)])
def test_a_static_batch_lets_nobody_in_while_any_of_it_runs(running, admits):
    limits = Static(max_running_requests=32).limits(FakeReplica(9, running), 0.0)
    assert (limits.admit, limits.decode, limits.whole_prompts, limits.max_running_requests) == (admits, True, True, 32)
    assert limits.stable_steps == FOREVER


@pytest.mark.parametrize(
    ("waiting", "running", "now_s", "admits", "retry_at_s"),
    [
        (3, 0, 5.0, False, 5.25),
        (3, 0, 5.25, True, None),
        (8, 0, 5.0, True, None),
        (8, 1, 9.0, False, None),
        (3, 1, 5.0, False, None),
    ],
)
def test_a_dynamic_batch_starts_when_full_or_when_its_window_is_over(waiting, running, now_s, admits, retry_at_s):
    policy = Dynamic(max_running_requests=8, window_s=0.25)
    limits = policy.limits(FakeReplica(waiting, running, oldest_arrival_s=5.0), now_s)
    assert (limits.admit, limits.retry_at_s) == (admits, retry_at_s)


def test_a_dynamic_batch_waits_for_nobody_where_nobody_came():
    limits = Dynamic().limits(FakeReplica(), 5.0)
    assert (limits.admit, limits.retry_at_s) == (False, None)


@pytest.mark.parametrize(
    ("next_blocks", "running", "prefills"), [(None, 3, False), (10, 3, True), (11, 3, False), (10, 4, False)]
)
def test_prompts_go_first_if_the_next_one_fits(next_blocks, running, prefills):
    replica = FakeReplica(1, running, running, next_blocks=next_blocks, free_blocks=10)
    limits = PrefillFirst(max_running_requests=4).limits(replica, 0.0)
    assert (limits.admit, limits.decode) == (prefills, not prefills)
    assert limits.whole_prompts


@pytest.mark.parametrize(
    ("done", "looks", "stable"), [(30, True, FOREVER), (31, False, 29), (59, False, 1), (60, True, FOREVER)]
)
def test_new_requests_are_looked_for_every_so_many_decode_steps(done, looks, stable):
    policy = PrefillFirst(receive_interval_steps=30)
    waiting = FakeReplica(1, 1, 1, next_blocks=1, free_blocks=10, decode_steps=done)
    limits = policy.limits(waiting, 0.0)
    assert (limits.admit, limits.decode, limits.stable_steps) == (looks, not looks, stable)


def test_new_requests_are_looked_for_after_prompts_and_when_nobody_runs():
    policy = PrefillFirst(receive_interval_steps=30)
    assert policy.limits(FakeReplica(2, 0, 0, next_blocks=1, free_blocks=10, decode_steps=7), 0.0).admit
    replica = FakeReplica(1, 1, 1, next_blocks=1, free_blocks=10, decode_steps=7)
    assert policy.limits(replica, 0.0).admit
    assert policy.limits(replica, 0.0).admit
    replica.next_blocks = None
    assert not policy.limits(replica, 0.0).admit
    replica.next_blocks, replica.decode_steps = 1, 36
    assert not policy.limits(replica, 0.0).admit
    replica.decode_steps = 37
    assert policy.limits(replica, 0.0).admit


def test_prompts_in_flight_are_whole_beside_decodes():
    limits = InFlight(max_batched_tokens=100).limits(FakeReplica(3, 3, 3), 0.0)
    assert (limits.decode, limits.admit, limits.whole_prompts, limits.max_batched_tokens) == (True, True, True, 100)


@pytest.mark.parametrize(("rejects", "longest"), [(True, 100), (False, None)])
def test_prompts_in_flight_beyond_the_budget_are_rejected_on_wish(rejects, longest):
    assert InFlight(max_batched_tokens=100, reject_longer=rejects).longest_prompt_tokens == longest


def test_prompts_in_flight_wait_for_more_or_for_so_many_steps():
    policy = InFlight(max_batched_tokens=1000, max_waiting_steps=3, enough_tokens_share=0.5)
    replica = FakeReplica(1, 8, 8, next_blocks=1, waiting_tokens=400, decode_steps=7)
    admits = []
    for _ in range(6):
        admits.append(policy.limits(replica, 0.0).admit)
        replica.decode_steps += 1
    assert admits == [False, False, False, True, False, False]
    replica.waiting_tokens = 492
    assert policy.limits(replica, 0.0).admit
    replica.waiting_tokens = 491
    assert not policy.limits(replica, 0.0).admit


@pytest.mark.parametrize("change", [{"next_blocks": None}, {"next_blocks": 101}])
def test_steps_in_which_no_prompt_in_flight_could_come_are_no_wait(change):
    policy = InFlight(max_waiting_steps=3)
    replica = FakeReplica(1, 8, 8, next_blocks=1, waiting_tokens=400, decode_steps=7)
    assert not policy.limits(replica, 0.0).admit
    assert policy.limits(replace(replica, decode_steps=8, **change), 0.0).admit
    admits = [policy.limits(replace(replica, decode_steps=step), 0.0).admit for step in (90, 91, 91, 92)]
    assert admits == [False, False, False, True]


@pytest.mark.parametrize(
    ("changes", "admit", "stable_steps"),
    [
        ({}, False, 1),
        ({"decoding_requests": 0}, True, 1),  # nobody is held up
        ({"next_blocks": None}, True, FOREVER),
        ({"next_blocks": 101}, True, FOREVER),
        ({"running_requests": 9}, True, FOREVER),
    ],
)
def test_prompts_in_flight_wait_where_they_would_hold_up_others(changes, admit, stable_steps):
    policy = InFlight(max_running_requests=9, max_waiting_steps=3)
    replica = FakeReplica(1, 8, 8, next_blocks=1, waiting_tokens=400)
    limits = policy.limits(replace(replica, **changes), 0.0)
    assert (limits.admit, limits.stable_steps) == (admit, stable_steps)


@pytest.mark.parametrize(("name", "value"), [("max_waiting_steps", -1), ("enough_tokens_share", 1.1)])
def test_waits_in_flight_out_of_range(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        InFlight(**{name: value})


def alternate(steps, next_blocks=1, decoding=2, accepted=True):
    """For each step, "p" if prompts run alone or "d"; a request is let in whenever prompts may run."""
    policy = DecodePrefillAlternate(decode_steps=3)
    done, order = 0, ""
    for _ in range(steps):
        replica = FakeReplica(1, 2, decoding, next_blocks=next_blocks, decode_steps=done)
        limits = policy.limits(replica, 0.0)
        if limits.admit and accepted:
            policy.accepts(FakeRequest(), 2)
        order += "p" if limits.admit and accepted else "d"
        done += order[-1] == "d"
    return order


def test_prompts_and_decodes_take_turns():
    assert alternate(9) == "pdddpdddp"
    assert alternate(4, decoding=0) == "pppp"
    assert alternate(4, next_blocks=None) == "dddd"


def test_a_turn_of_prompts_that_lets_nobody_in_is_not_spent():
    policy = DecodePrefillAlternate(decode_steps=3)
    replica = FakeReplica(1, 2, 2, next_blocks=1, decode_steps=5)
    assert policy.limits(replica, 0.0).admit
    replica.decode_steps = 6
    limits = policy.limits(replica, 0.0)
    assert (limits.admit, limits.stable_steps) == (True, FOREVER)


def test_decodes_stand_until_the_turn_of_prompts():
    policy = DecodePrefillAlternate(decode_steps=8)
    replica = FakeReplica(1, 2, 2, next_blocks=1, decode_steps=5)
    policy.limits(replica, 0.0)
    policy.accepts(FakeRequest(), 2)
    replica.decode_steps = 7
    limits = policy.limits(replica, 0.0)
    assert (limits.admit, limits.stable_steps) == (False, 6)


def test_a_batch_is_of_one_bucket_until_nobody_runs():
    policy = Bucketed(edges_tokens=(100, 1000))
    tokens = [100, 1, 101, 1000, 1001]
    assert [
        policy.accepts(FakeRequest(prompt_tokens=prompt), 0 if index == 0 else 1) for index, prompt in enumerate(tokens)
    ] == [True, True, False, False, False]
    assert policy.accepts(FakeRequest(prompt_tokens=1001), 0)
    assert policy.accepts(FakeRequest(prompt_tokens=10**6), 5)
    assert not policy.accepts(FakeRequest(prompt_tokens=1000), 5)


@pytest.mark.parametrize(
    ("waiting", "running", "decoding", "next_blocks", "prefills"),
    [
        (0, 0, 0, None, False),
        (1, 0, 0, 5, True),
        (4, 5, 5, 5, False),
        (5, 5, 5, 5, True),
        (9, 7, 7, 5, False),  # no more than three of them could run
        (9, 5, 5, 101, False),
    ],
)
def test_by_state_the_more_go_first(waiting, running, decoding, next_blocks, prefills):
    policy = Bucketed(by="state", max_running_requests=10)
    limits = policy.limits(FakeReplica(waiting, running, decoding, next_blocks=next_blocks), 0.0)
    assert (limits.admit, limits.decode, limits.whole_prompts) == (prefills, not prefills, True)
    assert limits.stable_steps == (1 if waiting else FOREVER)
    assert policy.accepts(FakeRequest(prompt_tokens=1), 0)
    assert policy.accepts(FakeRequest(prompt_tokens=10**6), 5)


def adaptive(waiting=1, running=20, decoding=20, **changes):
    """Limits on a replica whose steps take a millisecond a token."""
    given = {"max_batched_tokens": 1000, "tpot_target_s": 0.1, "min_chunk_tokens": 16} | changes
    return ChunkedPrefill(**given).limits(FakeReplica(waiting, running, decoding, s_per_token=1e-3), 0.0)


@pytest.mark.parametrize(("decoding", "chunk"), [(1, 99), (20, 80), (84, 16), (99, 16), (500, 16), (990, 10)])
def test_the_chunk_is_the_greatest_with_which_a_step_keeps_its_target(decoding, chunk):
    """It shrinks as more decode, to no less than the least while the budget has room for that."""
    limits = adaptive(running=decoding, decoding=decoding)
    assert (limits.max_batched_tokens, limits.stable_steps) == (decoding + chunk, 1)


def test_a_target_bounds_nothing_where_nobody_decodes_or_no_prompt_is_there():
    for waiting, running, decoding in ((1, 0, 0), (3, 2, 0), (0, 20, 20)):
        limits = adaptive(waiting, running, decoding)
        assert (limits.max_batched_tokens, limits.stable_steps) == (1000, FOREVER)
    assert adaptive(waiting=0, running=21, decoding=20).max_batched_tokens == 100
    assert adaptive(tpot_target_s=9.0).max_batched_tokens == 1000
    assert adaptive(long_prefill_threshold_tokens=30).max_chunk_tokens == 30


@pytest.mark.parametrize(("waiting", "slots"), [(0, 10), (5, 20), (10, 30), (19, 48), (20, 50), (999, 50)])
def test_slots_follow_the_queue_in_a_straight_line(waiting, slots):
    policy = QueueAware(min_running_requests=10, max_running_requests=50, full_at_waiting=20)
    limits = policy.limits(FakeReplica(waiting), 0.0)
    assert (limits.max_running_requests, limits.stable_steps) == (slots, 1)


def budget_after(policy, *finished):
    """The budget once requests with these (TTFT, TPOT) are finished."""
    for ttft_s, tpot_s in finished:
        policy.finished(FakeRequest(), ttft_s, tpot_s)
    return policy.limits(FakeReplica(), 0.0).max_batched_tokens


def steered(**changes):
    given = {"ttft_p99_s": 1.0, "tpot_p99_s": 0.05, "min_batched_tokens": 1000, "window": 4, "every": 2}
    return SloFeedback(max_batched_tokens=8000, **(given | changes))


def test_the_budget_is_halved_while_tokens_are_late_and_grows_while_only_first_tokens_are():
    policy = steered()
    assert budget_after(policy) == 8000
    assert budget_after(policy, (0.1, 0.06)) == 8000, "judged every second request"
    assert budget_after(policy, (0.1, 0.06)) == 4000
    assert budget_after(policy, *[(0.1, 0.06)] * 6) == 1000, "never below the least"
    assert budget_after(policy, *[(9.0, 0.01)] * 2) == 1000, "the window still holds late tokens"
    assert budget_after(policy, *[(9.0, 0.01)] * 4) == 3000
    assert budget_after(policy, *[(0.1, 0.01)] * 2) == 4000, "the window still holds late first tokens"
    assert budget_after(policy, *[(0.1, 0.01)] * 8) == 4000
    assert budget_after(policy, *[(9.0, 0.01)] * 20) == 8000, "never above the most"


def test_a_single_token_says_nothing_of_tpot():
    assert budget_after(steered(), *[(0.1, None)] * 4) == 8000


def test_the_budget_has_room_for_all_that_decode_as_far_as_it_may_grow():
    policy = steered(min_batched_tokens=2)
    assert budget_after(policy, *[(0.1, 0.06)] * 100) == 2
    assert policy.limits(FakeReplica(decoding_requests=70), 0.0).max_batched_tokens == 71
    assert policy.limits(FakeReplica(decoding_requests=9000), 0.0).max_batched_tokens == 8000


COUNTS = {
    Static: ("max_running_requests", "max_batched_tokens"),
    Dynamic: ("max_running_requests", "max_batched_tokens"),
    PrefillFirst: ("max_running_requests", "max_batched_tokens"),
    ChunkedPrefill: ("max_running_requests", "max_batched_tokens", "min_chunk_tokens"),
    DecodePrefillAlternate: ("decode_steps", "max_running_requests", "max_batched_tokens"),
    Bucketed: ("max_running_requests", "max_batched_tokens"),
    QueueAware: ("min_running_requests", "max_running_requests", "full_at_waiting", "max_batched_tokens"),
    SloFeedback: ("min_batched_tokens", "max_batched_tokens", "max_running_requests", "window", "every"),
}


@pytest.mark.parametrize(("policy", "name"), [(policy, name) for policy, names in COUNTS.items() for name in names])
def test_counts_are_at_least_one(policy, name):
    with pytest.raises(ValueError, match=f"{name} is 0, expected a whole number from 1 to"):
        policy(**{name: 0})


@pytest.mark.parametrize(
    ("policy", "parameters", "message"),
    [
        (Dynamic, {"window_s": -0.1}, "window_s is -0.1, expected a number from 0 to"),
        (Bucketed, {"edges_tokens": (5, 5)}, r"edges_tokens is \[5, 5\], expected rising numbers"),
        (Bucketed, {"by": "age"}, "by is 'age', expected length or state"),
        (ChunkedPrefill, {"tpot_target_s": 0.0}, "tpot_target_s is 0.0, expected a number from 1e-09 to"),
        (QueueAware, {"min_running_requests": 300}, "min_running_requests is 300, expected at most 256"),
        (SloFeedback, {"ttft_p99_s": 0.0}, "ttft_p99_s is 0.0, expected a number from 1e-09 to"),
        (SloFeedback, {"tpot_p99_s": -1.0}, "tpot_p99_s is -1.0, expected a number from 1e-09 to"),
        (SloFeedback, {"min_batched_tokens": 9000}, "min_batched_tokens is 9000, expected at most 8192"),
    ],
)
def test_parameters_out_of_range(policy, parameters, message):
    with pytest.raises(ValueError, match=message):
        policy(**parameters)


@pytest.mark.parametrize(
    ("waiting", "running", "steps_since", "prefills"),
    [
        (2, 10, 1, False),  # 0.3 of ten is three
        (3, 10, 1, True),
        (3, 10, 0, False),  # decodes have a step between two of prompts
        (2, 10, 3, False),
        (2, 10, 4, True),  # the fifth token since the last prompts
        (1, 3, 1, True),  # 0.3 of three is none
    ],
)
def test_prompts_wait_until_they_are_enough_or_have_waited_for_long(waiting, running, steps_since, prefills):
    policy = WaitingServed(waiting_served_ratio=0.3, max_waiting_steps=5)
    replica = FakeReplica(waiting, running, running, next_blocks=1, free_blocks=10, decode_steps=100)
    policy.limits(replica, 0.0)
    policy.accepts(FakeRequest(), running)
    replica.decode_steps += steps_since
    limits = policy.limits(replica, 0.0)
    assert (limits.admit, limits.decode, limits.stable_steps) == (prefills, not prefills, 1)


def test_prompts_that_do_not_fit_pause_nobody():
    replica = FakeReplica(9, 3, 3, next_blocks=11, free_blocks=10)
    limits = WaitingServed().limits(replica, 0.0)
    assert (limits.admit, limits.decode, limits.stable_steps) == (False, True, FOREVER)


@pytest.mark.parametrize(
    ("running", "decoding", "next_blocks", "prefills"),
    [(0, 0, None, False), (0, 0, 5, True), (3, 3, 5, True), (3, 3, 500, False), (3, 2, 500, True), (3, 2, None, True)],
)
def test_a_cut_prompt_goes_on_before_anybody_decodes(running, decoding, next_blocks, prefills):
    replica = FakeReplica(1, running, decoding, next_blocks=next_blocks)
    limits = ChunkedPrefillFirst(max_batched_tokens=800).limits(replica, 0.0)
    assert (limits.admit, limits.decode, limits.whole_prompts) == (prefills, not prefills, False)
    assert limits.max_batched_tokens == limits.max_chunk_tokens == 800
