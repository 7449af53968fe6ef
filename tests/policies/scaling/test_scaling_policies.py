"""What each scaling policy wants, by hand."""

from dataclasses import dataclass
from math import sqrt

import pytest

from policies.scaling.fixed import Fixed
from policies.scaling.forecast import Forecast
from policies.scaling.latency import Latency
from policies.scaling.queue import Queue
from policies.scaling.schedule import Schedule
from policies.scaling.utilisation import Utilisation


@dataclass
class Seen:
    """A pool as a policy sees it."""

    stated_replicas: int = 3
    serving_replicas: int = 4
    starting_replicas: int = 0
    start_s: float = 60.0
    since_s: float = 10.0
    arrived_requests: int = 0
    waiting_requests: int = 0
    running_requests: int = 0
    used_share: float = 0.0
    latest_ttft_s: float | None = None

    def ttft_s(self, share):
        return self.latest_ttft_s


def test_fixed_wants_what_is_stated():
    assert Fixed().wanted(Seen(), 5.0) == 3


def test_queue_wants_a_replica_for_so_many_requests():
    assert Queue(requests_per_replica=8).wanted(Seen(waiting_requests=6, running_requests=30), 5.0) == 4.5


def test_utilisation_wants_replicas_to_be_as_full_as_the_target():
    policy = Utilisation(target=0.5, tolerance=0.1)
    assert policy.wanted(Seen(used_share=0.75), 0.0) == pytest.approx(6)
    assert policy.wanted(Seen(used_share=0.53), 0.0) == 4
    assert policy.wanted(Seen(used_share=0.25), 0.0) == pytest.approx(2)
    assert policy.wanted(Seen(serving_replicas=0, starting_replicas=2), 0.0) == 2


def test_latency_grows_by_a_factor_and_falls_by_one():
    policy = Latency(ttft_s=1.0, growth=1.5, idle_share=0.3)
    assert policy.wanted(Seen(latest_ttft_s=1.2), 0.0) == 6
    assert policy.wanted(Seen(latest_ttft_s=0.5), 0.0) == 4
    assert policy.wanted(Seen(latest_ttft_s=0.2), 0.0) == 3
    assert policy.wanted(Seen(), 0.0) == 3
    assert policy.wanted(Seen(latest_ttft_s=9.0, starting_replicas=2), 0.0) == 6


def test_forecast_draws_the_trend_on():
    policy = Forecast(requests_per_s=2.0, level=1.0, trend=1.0, deviations=0.0)
    assert policy.wanted(Seen(arrived_requests=40), 10.0) == pytest.approx(4 / 2)
    # from 4/s to 5/s in 10 s: 0.1/s each second, for the 60 s of a start
    assert policy.wanted(Seen(arrived_requests=50), 20.0) == pytest.approx((5 + 6) / 2)
    assert policy.wanted(Seen(arrived_requests=0), 30.0) == 0


def test_forecast_smooths_as_holt_does():
    policy = Forecast(requests_per_s=1.0, level=0.5, trend=0.2, ahead_s=0.0, deviations=0.0)
    policy.wanted(Seen(arrived_requests=40), 10.0)
    level = 0.5 * 6 + 0.5 * 4
    assert policy.wanted(Seen(arrived_requests=60), 20.0) == pytest.approx(level)
    slope = 0.2 * (level - 4) / 10
    second = 0.5 * 6 + 0.5 * (level + 10 * slope)
    assert policy.wanted(Seen(arrived_requests=60), 30.0) == pytest.approx(second)


def test_forecast_adds_deviations_of_poisson_arrivals():
    policy = Forecast(requests_per_s=1.0, deviations=2.0)
    assert policy.wanted(Seen(arrived_requests=90), 10.0) == pytest.approx(9 + 2 * sqrt(9))


def test_schedule_repeats_and_begins_with_the_number_of_the_end():
    policy = Schedule(replicas={10: 2, 30: 7}, period_s=40.0)
    assert [policy.wanted(Seen(), now_s) for now_s in (0.0, 9.9, 10.0, 29.0, 30.0, 45.0, 55.0)] == [7, 7, 2, 2, 7, 7, 2]
    assert Schedule(replicas={10: 2, 30: 7}, period_s=40.0, ahead_s=5.0).wanted(Seen(), 5.0) == 2
    assert Schedule().wanted(Seen(), 0.0) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Queue(requests_per_replica=0.0), "requests_per_replica is 0"),
        (lambda: Utilisation(target=1.5), r"target is 1\.5, expected a number from 0\.01 to 1"),
        (lambda: Latency(growth=0.5), r"growth is 0\.5"),
        (lambda: Forecast(level=2.0), r"level is 2\.0"),
        (lambda: Schedule(replicas={90000: 2}), "replicas is 90000, expected a whole number from 0 to 86400"),
    ],
)
def test_parameters_out_of_range_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
