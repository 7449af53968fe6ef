"""The search finds what trying everything finds, with a fraction of the trials."""

from dataclasses import dataclass
from random import Random

import pytest

from experiments.planner.bounds import Bound
from experiments.planner.search import Found, Try, search


@dataclass(frozen=True)
class FakeSetUp:
    usd_per_h: float
    devices: int = 1


@dataclass(frozen=True)
class FakeOutcome:
    holds: bool
    figures = {"throughput": {"keeps_up": None, "served_requests_per_s": None}}  # noqa: RUF012


def carried_out(searching, needed: list[int]) -> tuple[Found, int]:
    """What a search comes to where set-ups hold with as many replicas as ``needed``, and how many trials it took."""
    trials, answers = 0, None
    while True:
        try:
            tries = next(searching) if answers is None else searching.send(answers)
        except StopIteration as ended:
            return ended.value, trials
        trials += len(tries)
        answers = {tried: FakeOutcome(tried.replicas >= needed[tried.place]) for tried in tries}


@pytest.mark.parametrize("seed", range(50))
def test_the_optimum_is_that_of_exhaustive_search_with_at_most_15_percent_of_its_trials(seed):
    random = Random(seed)
    count, most = random.randint(8, 40), 24
    set_ups = [FakeSetUp(random.choice([0.4, 0.9, 2.5, 4.0]) * random.choice([1, 2, 4])) for _ in range(count)]
    bounds = [Bound(least := random.randint(1, 12), least / 0.95) for _ in range(count)]
    needed = [bound.replicas + random.randint(0, 5) for bound in bounds]
    found, trials = carried_out(search(range(count), set_ups, bounds, None), needed)
    cheapest = min(each.usd_per_h * replicas for each, replicas in zip(set_ups, needed, strict=True))
    assert found.best.usd_per_h == pytest.approx(cheapest)
    assert trials <= 0.15 * count * most


def test_nothing_dearer_than_the_budget_is_tried():
    set_ups = [FakeSetUp(3.0), FakeSetUp(1.0)]
    found, trials = carried_out(search((0, 1), set_ups, [Bound(2, 2.0), Bound(3, 3.0)], 5.0), [2, 5])
    assert found.best.place == 1
    assert found.best.replicas == 5
    assert found.dearer == {0: 6.0}
    assert trials <= 3


def test_a_set_up_that_no_number_of_replicas_helps_is_given_up():
    found, trials = carried_out(search((0,), [FakeSetUp(1.0)], [Bound(2, 2.0)], None), [10_000])
    assert found.best is None
    assert trials < 10
    assert found.dearer[0] > 20


def test_impossible_set_ups_are_not_tried():
    found, trials = carried_out(search((0,), [FakeSetUp(1.0)], [Bound(1, 0.0, "no memory")], None), [1])
    assert (found.impossible, found.solved, trials) == ({0: "no memory"}, [], 0)
    assert Try(0, 1) == Try(0, 1)
