import pytest

from policies.horizon import FOREVER
from simcore.core.clock import to_ns, to_s
from simcore.service.clock import ARRIVAL, PLAN, STEP_END, Alarm, Clock


def test_events_of_the_same_nanosecond_come_in_their_stated_order():
    """Step ends, then arrivals and other plain events, then planning; equals in the order they were scheduled."""
    clock, seen = Clock(), []

    def note(name, event):
        event.callbacks.append(lambda _: seen.append((clock.now_ns, name)))

    note("plan", Alarm(clock, 5, PLAN))
    note("first arrival", Alarm(clock, 5, ARRIVAL))
    note("timeout", clock.timeout(5))
    note("first step end", Alarm(clock, 5, STEP_END))
    note("second step end", Alarm(clock, 5, STEP_END))
    note("earlier plan", Alarm(clock, 4, PLAN))
    clock.run()
    assert seen == [
        (4, "earlier plan"),
        (5, "first step end"),
        (5, "second step end"),
        (5, "first arrival"),
        (5, "timeout"),
        (5, "plan"),
    ]


def test_what_an_arrival_causes_at_once_comes_before_planning():
    clock, seen = Clock(), []

    def arrive():
        yield clock.timeout(3)
        caused = clock.event()
        caused.callbacks.append(lambda _: seen.append("caused"))
        caused.succeed()

    def plan():
        yield Alarm(clock, 3, PLAN)
        seen.append("plan")

    clock.process(plan())
    clock.process(arrive())
    clock.run()
    assert seen == ["caused", "plan"]


def test_the_next_event_and_skipping_up_to_it():
    clock = Clock()
    assert clock.next_event_ns == FOREVER
    fired = Alarm(clock, 7, STEP_END)
    assert clock.next_event_ns == 7
    clock.skip_to(6)
    assert (clock.now_ns, fired.processed) == (6, False)
    clock.run()
    assert (clock.now_ns, fired.processed) == (7, True)


def test_an_alarm_counts_from_now():
    clock = Clock()
    clock.skip_to(100)
    Alarm(clock, 20, PLAN)
    assert clock.next_event_ns == 120


@pytest.mark.parametrize("nanoseconds", [0, 1, 999_999_999, 86_400_000_000_001, 2**52 + 1])
def test_seconds_keep_every_nanosecond_of_a_month(nanoseconds):
    assert to_ns(to_s(nanoseconds)) == nanoseconds


def test_the_clock_stays_whole():
    clock = Clock()

    def wait():
        for _ in range(3):
            yield clock.timeout(to_ns(0.1))

    clock.process(wait())
    clock.run()
    assert clock.now_ns == 300_000_000
    assert isinstance(clock.now_ns, int)


def test_a_clock_that_was_stopped_tells_whether_more_was_to_come():
    clock = Clock()

    def process():
        yield clock.timeout(10)

    clock.process(process())
    assert clock.has_more_to_do
    clock.run(until=5)
    assert clock.has_more_to_do
    clock.run(until=20)
    assert not clock.has_more_to_do
