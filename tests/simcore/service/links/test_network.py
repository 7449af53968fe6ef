"""Transfers on the clock, against times worked out by hand."""

import pytest

from simcore.service.clock import Clock
from simcore.service.links import Network, Place, Topology

GB = 10**9


@pytest.fixture
def clock():
    return Clock()


def ends_s(network):
    return {transfer.number: transfer.end_ns / 1e9 for transfer in network.finished}


def start_at(clock, network, time_s, route, size_bytes):
    clock.call_at(round(time_s * 1e9), lambda: network.send(route, size_bytes, lambda _: None))


def test_one_transfer_takes_its_size_over_the_slowest_link_and_the_latency(clock):
    network = Network(clock, {"a": 2.0 * GB, "b": 1.0 * GB}, latency_ns=5_000)
    network.send(["a", "b"], 3 * GB, lambda _: None)
    clock.run()
    assert ends_s(network) == {0: 3.000005}


def test_who_comes_later_takes_half_and_gives_it_back(clock):
    # 1 s alone (1 GB), then 2 s at half (1 GB each): the second ends; the first has 1 GB left for one more second.
    network = Network(clock, {"a": 1.0 * GB})
    start_at(clock, network, 0.0, ["a"], 3 * GB)
    start_at(clock, network, 1.0, ["a"], 1 * GB)
    clock.run()
    assert ends_s(network) == {0: 4.0, 1: 3.0}


def test_a_link_that_slows_down_carries_the_rest_at_what_is_left(clock):
    # 4 s at 1 GB/s leave 6 GB, which take 12 s at half the rate.
    network = Network(clock, {"a": 1.0 * GB})
    start_at(clock, network, 0.0, ["a"], 10 * GB)
    clock.call_at(4 * GB, lambda: network.set_rates({"a": 0.5 * GB}))
    clock.run()
    assert ends_s(network) == {0: 16.0}


def test_a_stopped_transfer_leaves_its_share_to_others(clock):
    network = Network(clock, {"a": 1.0 * GB})
    told = []
    stopped = network.send(["a"], 9 * GB, told.append)
    network.send(["a"], 2 * GB, told.append)
    clock.call_at(2 * GB, lambda: network.stop(stopped))
    clock.run()
    assert ends_s(network) == {1: 3.0}
    assert [transfer.number for transfer in told] == [1]


def test_transfers_that_end_together_are_told_in_their_order(clock):
    network = Network(clock, {"a": 1.0 * GB, "b": 1.0 * GB})
    told = []
    for _ in range(3):
        network.send(["a", "b"], GB // 3, lambda transfer: told.append(transfer.number))
    clock.run()
    assert told == [0, 1, 2]
    assert clock.now_ns == pytest.approx(1e9, abs=3)


def test_routes_go_by_the_closest_links_that_both_have():
    places = [Place(node, 450.0, 50.0) for node in (0, 0, 1, 2)]
    topology = Topology(places, nodes_per_rack=2, uplink_bytes_per_s=100.0)
    assert topology.route(0, 1) == ("scale-up out 0", "scale-up in 1")
    assert topology.route(1, 2) == ("NIC out 1", "NIC in 2")
    assert topology.route(3, 0) == ("NIC out 3", "uplink 1", "downlink 0", "NIC in 0")
    assert {topology.bytes_per_s[link] for link in topology.route(3, 0)} == {50.0, 100.0}
    assert Topology(places).route(3, 0) == ("NIC out 3", "NIC in 0")
