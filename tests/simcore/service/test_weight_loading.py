"""Weights over the links on their way, by hand."""

import pytest

from simcore.core.clock import to_s
from simcore.service.clock import Clock
from simcore.service.weight_loading import WeightLinks, WeightLoading, start_s

GB = 10**9


def links(source="network", read=4.0, nic=50.0, pcie=64.0):
    return WeightLinks(16 * GB, source, read * GB, nic * GB, pcie * GB)


def loaded_s(links, starts, from_host=()):
    """When the weights of each replica are there, which begin to load at such times."""
    clock, found = Clock(), {}
    loading = WeightLoading(clock, links, range(len(starts)))

    def load(replica):
        loading.load(replica, replica in from_host, lambda: found.__setitem__(replica, to_s(clock.now_ns)))

    for replica, at_s in enumerate(starts):
        clock.call_at(round(at_s * GB), lambda replica=replica: load(replica))
    clock.run()
    return [found[replica] for replica in range(len(starts))]


def test_alone_the_narrowest_link_decides():
    assert loaded_s(links(), [0.0]) == [4.0]
    assert loaded_s(links(nic=2.0), [0.0]) == [8.0]
    assert loaded_s(links("drive", nic=2.0), [0.0]) == [4.0]
    assert links().alone_s == 4.0
    assert start_s(links(), 30 * GB, 35 * GB) == 69.0


def test_a_store_is_shared_and_drives_are_not():
    # half the store for 2 s each, after the first had it for 2 s alone: 8 + 8 at half rate; then alone again
    assert loaded_s(links(), [0.0, 2.0]) == [pytest.approx(6.0), pytest.approx(8.0)]
    assert loaded_s(links("drive"), [0.0, 2.0]) == [4.0, 6.0]


def test_from_host_memory_weights_pass_pcie_alone():
    assert loaded_s(links(), [0.0, 0.0], from_host=(1,)) == [4.0, 0.25]
