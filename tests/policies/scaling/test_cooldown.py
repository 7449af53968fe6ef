"""Fast out, slow in."""

import pytest

from policies.scaling.cooldown import Cooldown


def test_it_grows_at_once_and_falls_to_what_was_wanted_at_most_for_a_while():
    cooldown = Cooldown(1, 10, in_wait_s=30.0)
    assert cooldown.replicas(5, 2, 0.0) == 5
    assert cooldown.replicas(3, 5, 10.0) == 5
    assert cooldown.replicas(1, 5, 29.0) == 5
    assert cooldown.replicas(1, 5, 30.0) == 3  # the five of time 0 are forgotten
    assert cooldown.replicas(1, 3, 40.0) == 1


def test_what_is_there_at_first_counts_as_wanted():
    cooldown = Cooldown(1, 10, in_wait_s=30.0)
    assert cooldown.replicas(1, 4, 10.0) == 4
    assert cooldown.replicas(1, 4, 40.0) == 1


def test_without_a_wait_it_falls_at_once():
    cooldown = Cooldown(1, 10, in_wait_s=0.0)
    assert [cooldown.replicas(wanted, 4, 1.0 * place) for place, wanted in enumerate((2, 6, 0))] == [2, 6, 1]


def test_it_waits_between_two_times_that_it_grows():
    cooldown = Cooldown(1, 10, out_wait_s=20.0)
    assert cooldown.replicas(2, 1, 0.0) == 2
    assert cooldown.replicas(4, 2, 10.0) == 2
    assert cooldown.replicas(4, 2, 20.0) == 4


def test_below_the_least_it_never_waits():
    cooldown = Cooldown(3, 10, out_wait_s=20.0)
    assert cooldown.replicas(4, 3, 0.0) == 4
    assert cooldown.replicas(4, 2, 5.0) == 4


@pytest.mark.parametrize(("wanted", "expected"), [(2.0000000001, 2), (2.1, 3), (99.0, 6), (-1.0, 1)])
def test_parts_of_a_replica_are_rounded_up_within_the_bounds(wanted, expected):
    assert Cooldown(1, 6, in_wait_s=0.0).replicas(wanted, 4, 0.0) == expected


def test_it_falls_by_so_many_at_a_time():
    cooldown = Cooldown(1, 10, in_wait_s=0.0, most_in=2)
    assert cooldown.replicas(1, 6, 0.0) == 4
    assert cooldown.replicas(1, 4, 1.0) == 2
