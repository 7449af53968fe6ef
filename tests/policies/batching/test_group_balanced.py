import pytest

from policies.batching.group_balanced import GroupBalanced
from policies.horizon import FOREVER
from tests.policies.views import FakeReplica, FakeRequest


class Twin:
    """A policy and a replica whose every prompt is let in when it may be, and decodes from then on."""

    def __init__(self, **parameters):
        self.policy = GroupBalanced(**{"data_parallel_ranks": 2, "gathering_steps": 0} | parameters)
        self.replica = FakeReplica()
        self.running = {}
        self.number = 0
        self.next_blocks = 1

    def comes(self, requests=1):
        self.replica.waiting_requests += requests
        return self

    def ends(self, number):
        self.policy.ended(self.running.pop(number))
        self.replica.decoding_requests -= 1

    def step(self, prompt_tokens=100):
        """The numbers of those whom one step lets in."""
        replica, admitted = self.replica, []
        replica.next_blocks = self.next_blocks if replica.queued_requests else None
        admit = self.policy.limits(replica, 0.0).admit
        while admit and replica.queued_requests and replica.next_blocks <= replica.free_blocks:
            request = FakeRequest(self.number, prompt_tokens=prompt_tokens)
            if not self.policy.accepts(request, len(self.running)):
                break
            self.running[self.number] = request
            admitted.append(self.number)
            self.number += 1
            replica.waiting_requests -= 1
        replica.decode_steps += replica.decoding_requests > 0
        replica.running_requests = replica.decoding_requests = len(self.running)
        return admitted


def test_who_finds_nobody_running_is_let_in_at_once():
    twin = Twin()
    assert twin.comes().step() == [0]
    assert twin.comes().step() == [1]  # the second group has nobody yet


def test_prompts_wait_until_every_group_has_one():
    twin = Twin()
    twin.comes(6).step()
    twin.ends(1)
    assert twin.comes().step() == []
    twin.ends(3)  # of the second group too
    assert twin.comes().step() == []
    twin.ends(0)
    assert twin.comes().step() == [6, 7, 8]


def test_prompts_wait_for_no_group_that_has_nobody_running():
    twin = Twin()
    twin.comes(4).step()
    twin.ends(1)
    twin.ends(3)
    assert twin.comes().step() == [4]


def test_after_enough_steps_in_which_not_all_had_one_whoever_waits_is_let_in():
    twin = Twin(max_waiting_steps=5)
    twin.comes(4).step()
    twin.step()
    twin.ends(1)
    twin.comes()
    assert [twin.step() for _ in range(6)] == [[], [], [], [], [4], []]


def test_the_time_to_let_them_in_goes_by_while_nobody_waits():
    twin = Twin(max_waiting_steps=5)
    twin.comes(4).step()
    for _ in range(12):
        twin.step()
    twin.ends(1)
    assert [twin.step() for _ in [twin.comes()] * 3] == [[], [], []]
    assert twin.step() == [4]  # at 15 steps


def test_complete_groups_gather_more():
    twin = Twin(gathering_steps=3)
    twin.comes(4).step()
    twin.ends(0)
    twin.ends(1)
    twin.comes(2)
    assert [twin.step() for _ in range(4)] == [[], [], [], [4, 5]]
    twin.ends(2)
    twin.ends(3)
    twin.comes(2)
    assert [twin.step() for _ in range(4)] == [[], [], [], [6, 7]]


def test_only_steps_in_which_all_have_one_count_as_gathering():
    twin = Twin(gathering_steps=3)
    twin.comes(4).step()
    twin.ends(0)
    twin.ends(1)
    assert [twin.step() for _ in [twin.comes(2)] * 2] == [[], []]
    twin.replica.waiting_requests = 0  # they give up
    assert [twin.step() for _ in range(10)] == [[]] * 10
    twin.comes(2)
    assert [twin.step() for _ in range(2)] == [[], [4, 5]]


def test_who_is_not_seen_yet_is_not_waited_for_and_does_not_count():
    twin = Twin()
    twin.comes(4).step()
    twin.ends(0)
    twin.ends(1)
    twin.replica.unseen_requests = 1
    assert twin.comes(2).step() == []
    twin.replica.unseen_requests = 0
    assert twin.step() == [4, 5]


def test_prompts_wait_for_a_slot_in_every_group():
    twin = Twin(max_running_requests=4)
    assert twin.comes(9).step() == [0, 1, 2, 3]
    twin.ends(0)
    assert [twin.step() for _ in range(3)] == [[], [], []]
    twin.ends(1)
    assert twin.step() == [4, 5]


def test_the_time_goes_by_while_there_is_a_slot_in_one_group_alone():
    twin = Twin(max_running_requests=4, max_waiting_steps=5)
    twin.comes(9).step()
    twin.ends(0)
    assert [twin.step() for _ in range(6)] == [[], [], [], [], [], [4]]
    assert twin.step() == []


def test_prompts_without_room_in_memory_do_not_begin_to_gather():
    twin = Twin(gathering_steps=2)
    twin.comes(4).step()
    twin.ends(0)
    twin.ends(1)
    twin.comes(2).next_blocks = 101
    assert [twin.step() for _ in range(7)] == [[]] * 7
    twin.next_blocks = 1
    assert [twin.step() for _ in range(3)] == [[], [], [4, 5]]


def test_each_group_has_its_part_of_the_budget():
    twin = Twin(max_batched_tokens=500)
    assert twin.comes(6).step() == [0, 1, 2, 3]
    assert twin.step() == [4, 5]
    assert twin.policy.longest_prompt_tokens == 250
    assert twin.comes().step(prompt_tokens=251) == []


def test_a_prompt_waits_for_the_group_with_fewest_rather_than_go_to_another():
    twin = Twin(max_batched_tokens=500, max_waiting_steps=1)
    twin.comes(10).step()
    for _ in range(4):
        twin.step()
    assert len(twin.running) == 10
    for number in (1, 3, 5, 7, 9):
        twin.ends(number)  # all of the second group
    assert twin.comes(3).step() == [10, 11]
    assert twin.step() == [12]


def test_who_goes_back_to_the_queue_leaves_its_group_at_once():
    """A displaced request makes room in the very step that was being planned."""
    policy = GroupBalanced(max_batched_tokens=100)
    replica = FakeReplica(1, next_blocks=1)
    assert policy.limits(replica, 0.0).admit
    assert policy.accepts(FakeRequest(0), 0)
    replica.running_requests = replica.decoding_requests = 1
    policy.limits(replica, 0.0)
    assert not policy.accepts(FakeRequest(1), 1)
    policy.ended(FakeRequest(0))
    assert policy.accepts(FakeRequest(1), 0)


def test_who_was_accepted_and_does_not_run_takes_no_room_when_nobody_does():
    policy = GroupBalanced(data_parallel_ranks=2, max_batched_tokens=500)
    replica = FakeReplica(2, next_blocks=1)
    assert policy.limits(replica, 0.0).admit
    assert all(policy.accepts(FakeRequest(number), 0) for number in (0, 1))  # and their prefixes are loaded
    assert policy.limits(replica, 0.0).admit
    assert policy.accepts(FakeRequest(2, prompt_tokens=250), 0)


def test_who_is_accepted_twice_counts_once():
    policy = GroupBalanced(data_parallel_ranks=2)
    replica = FakeReplica(3, next_blocks=1)
    policy.limits(replica, 0.0)
    assert [policy.accepts(FakeRequest(number), 0) for number in (0, 1, 1)] == [True, True, True]
    replica.running_requests = replica.decoding_requests = 2
    assert not policy.limits(replica, 0.0).admit
    policy.ended(FakeRequest(1))
    assert policy.limits(replica, 0.0).admit


def test_nobody_waits_for_decodes_that_there_are_not():
    """Those who run may be in another batch of a pipeline."""
    policy = GroupBalanced()
    replica = FakeReplica(2, next_blocks=1)
    assert policy.limits(replica, 0.0).admit
    assert policy.accepts(FakeRequest(0), 0)
    replica.running_requests = 1
    assert policy.limits(replica, 0.0).admit


@pytest.mark.parametrize(
    ("ended", "ends_next"),
    [((0, 1), 2), ((1, 3), 0)],
    ids=["all groups have a prompt", "a group has nobody who runs"],
)
def test_the_time_begins_anew_when_prompts_are_let_in(ended, ends_next):
    twin = Twin(max_waiting_steps=5)
    twin.comes(4).step()
    for _ in range(3):
        twin.step()
    for number in ended:
        twin.ends(number)
    assert twin.comes(2).step() == [4, 5]  # after three steps
    twin.ends(ends_next)
    twin.comes()
    assert [twin.step() for _ in range(5)] == [[], [], [], [], [6]]


def test_asking_again_in_the_same_step_gathers_nothing():
    twin = Twin(gathering_steps=2)
    twin.comes(4).step()
    twin.ends(0)
    twin.ends(1)
    assert twin.comes(2).step() == []
    for _ in range(5):
        assert not twin.policy.limits(twin.replica, 0.0).admit
    assert [twin.step() for _ in range(2)] == [[], [4, 5]]


def test_those_who_gave_up_waiting_are_forgotten():
    twin = Twin()
    twin.comes(4).step()
    twin.comes(3).step()
    twin.replica.waiting_requests = 1
    assert twin.step() == []


def test_limits_stand_while_nobody_waits():
    policy = GroupBalanced(data_parallel_ranks=4)
    assert policy.limits(FakeReplica(0, 3, 3), 0.0).stable_steps == FOREVER
    assert policy.limits(FakeReplica(1, 3, 3, next_blocks=1), 0.0).stable_steps == 1


@pytest.mark.parametrize(
    ("name", "value"), [("data_parallel_ranks", 0), ("max_waiting_steps", 0), ("gathering_steps", -1)]
)
def test_out_of_range(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        GroupBalanced(**{name: value})


def test_every_group_has_a_token_at_least():
    with pytest.raises(ValueError, match="max_batched_tokens is 7, expected a whole number from 8"):
        GroupBalanced(data_parallel_ranks=8, max_batched_tokens=7)
