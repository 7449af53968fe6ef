"""A link is a first-come, first-served resource, without the events of one."""

import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.clock import NS_PER_S
from simcore.memory.link import LOAD, WRITE, Link

BYTES_PER_S = 3e9


def ends_by_resource(transfers, latency_ns):
    """When each of (sent after a pause, bytes) arrives over a SimPy resource, in nanoseconds."""
    clock = simpy.Environment()
    link = simpy.Resource(clock, capacity=1)
    ends = {}

    def transfer(number, size_bytes):
        with link.request() as turn:
            yield turn
            yield clock.timeout(max(1, round(size_bytes * NS_PER_S / BYTES_PER_S)))
        yield clock.timeout(latency_ns)
        ends[number] = clock.now

    def sender():
        for number, (pause_ns, size_bytes) in enumerate(transfers):
            yield clock.timeout(pause_ns)
            clock.process(transfer(number, size_bytes))

    clock.process(sender())
    clock.run()
    return [ends[number] for number in range(len(transfers))]


@settings(deadline=None, derandomize=True)
@given(
    transfers=st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 10_000)), max_size=20),
    latency_ns=st.sampled_from([0, 1, 700]),
)
def test_it_does_what_a_resource_does(transfers, latency_ns):
    link, now_ns, ends = Link("link", BYTES_PER_S, latency_ns), 0, []
    for pause_ns, size_bytes in transfers:
        now_ns += pause_ns
        foreseen = link.would_end_ns(now_ns, [(now_ns, size_bytes)])
        ends.append(link.send(now_ns, size_bytes, LOAD))
        assert ends[-1] == foreseen
    assert ends == ends_by_resource(transfers, latency_ns)


def test_what_comes_later_waits_and_is_noted_as_it_moves():
    link = Link("link", 1e9, latency_ns=5)
    assert [link.send(0, 100, LOAD), link.send(10, 50, WRITE), link.send(400, 10, LOAD, not_before_ns=500)] == [
        105,
        155,
        515,
    ]
    assert list(link.transfers) == [(LOAD, 0, 100, 100), (WRITE, 100, 150, 50), (LOAD, 500, 510, 10)]


def test_what_follows_at_different_times_is_foreseen():
    link = Link("link", 1e9, latency_ns=7)
    link.send(0, 30, WRITE)
    parts = [(10, 20), (200, 40)]
    foreseen = link.would_end_ns(10, parts)
    link.send(10, 20, LOAD)
    assert link.send(200, 40, LOAD) == foreseen == 247
