from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.errors import UnknownNameError
from simcore.cost.assumptions import RooflineEfficiency
from simcore.cost.calibrated import Source, load_profile
from simcore.cost.collectives import (
    NETWORK,
    NVLINK,
    OPERATIONS,
    PCIE,
    PCIE_HOST,
    TOPOLOGIES,
    AlphaBeta,
    alpha_beta_constants,
    link_share,
    ring_steps,
)
from simcore.cost.fabric import Fabric
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.roofline import Roofline
from simcore.hardware import load_accelerator


def prices(accelerator, profile=None, pcie="auto", fitted=True):
    device = load_accelerator(accelerator)
    roofline = Roofline.of(device, RooflineEfficiency(), "bf16")
    calibrated = None if profile is None else load_profile(accelerator, profile)
    return KernelPrices(roofline, calibrated, fabric=Fabric.of(device, pcie), fitted_collectives=fitted)


def test_a_ring_by_hand():
    """1 MB among 4 at 100 GB/s, half of which is reached: 2 x 3/4 MB cross each link in 6 steps."""
    constants = AlphaBeta(NVLINK, "all_reduce", 5e-6, 1e-6, 0.5, (2, 8), (1, 2), None, "by hand")
    assert constants.seconds(1e6, 4, 100e9) == pytest.approx(5e-6 + 6 * 1e-6 + 1.5e6 / 50e9)
    gather = replace(constants, operation="all_gather")
    assert gather.seconds(1e6, 4, 100e9) == pytest.approx(5e-6 + 3 * 1e-6 + 0.75e6 / 50e9)
    to_all = replace(constants, operation="all_to_all")
    assert to_all.seconds(1e6, 4, 100e9) == pytest.approx(5e-6 + 1e-6 + 0.75e6 / 50e9)
    send = replace(constants, operation="send_recv")
    assert send.seconds(1e6, 2, 100e9) == pytest.approx(5e-6 + 1e-6 + 1e6 / 50e9)


@given(ranks=st.integers(2, 64))
def test_an_all_reduce_is_a_scatter_and_a_gather(ranks):
    for count in (ring_steps, link_share):
        assert count("all_reduce", ranks) == count("reduce_scatter", ranks) + count("all_gather", ranks)


def test_an_unknown_operation_is_refused():
    with pytest.raises(UnknownNameError, match="operation is 'allreduce'"):
        ring_steps("allreduce", 2)
    with pytest.raises(UnknownNameError, match="all_to_all"):
        link_share("alltoall", 2)


def test_every_link_and_operation_has_constants():
    constants = alpha_beta_constants()
    assert set(constants) == {(topology, operation) for topology in TOPOLOGIES for operation in OPERATIONS}
    for found in constants.values():
        assert 0.1 < found.efficiency < 1
        assert found.source


@pytest.mark.parametrize(
    ("accelerator", "pcie", "ranks", "topology"),
    [
        ("h100-sxm", "auto", 8, NVLINK),
        ("h100-sxm", "auto", 16, NETWORK),
        ("gb200", "auto", 72, NVLINK),
        ("l40s", "auto", 8, PCIE),
        ("l40s", "host", 2, PCIE_HOST),
        ("rtx-4090", "auto", 2, PCIE_HOST),
        ("rtx-4090", "peer", 2, PCIE),
    ],
)
def test_what_a_group_talks_over(accelerator, pcie, ranks, topology):
    assert Fabric.of(load_accelerator(accelerator), pcie).topology(ranks) == topology


def test_measured_tables_go_before_constants():
    size = 1 << 20
    measured = prices("h100-sxm", "vllm-0.19.0").collective("all_to_all", 8)
    assert measured.source == Source.CALIBRATED
    table = load_profile("h100-sxm", "vllm-0.19.0").collective("all_to_all", "nccl", 8)
    assert measured.seconds(size) == table.seconds(size)
    across = prices("h100-sxm", "vllm-0.19.0").collective("all_to_all", 16)
    assert across.source == Source.ALPHA_BETA
    assert not across.inside(size)
    elsewhere = prices("rtx-pro-6000-blackwell", "vllm-0.24.0", pcie="host").collective("all_reduce", 2)
    assert elsewhere.source == Source.ALPHA_BETA


def test_the_roofline_where_it_is_asked_for():
    price = prices("h100-sxm", fitted=False).collective("all_reduce", 8)
    assert price.source == Source.ROOFLINE
    assert price.seconds(0) == 0
    assert price.seconds(128) == 4.6e-6
    assert price.seconds(10**9) == pytest.approx(2 * 7 / 8 * 1e9 / (450e9 * 0.5))
    pcie = prices("rtx-4090", fitted=False).collective("all_reduce", 2)
    assert pcie.seconds(10**9) == pytest.approx(1e9 / (32e9 * 0.5))


@settings(deadline=None)
@given(size=st.integers(1, 1 << 30), ranks=st.sampled_from([2, 4, 8]), operation=st.sampled_from(OPERATIONS[:4]))
def test_more_bytes_or_ranks_never_take_less(size, ranks, operation):
    price = prices("a10g").collective(operation, ranks)
    assert price.seconds(size) <= price.seconds(2 * size)
    assert price.seconds(size) <= prices("a10g").collective(operation, 2 * ranks, PCIE).seconds(size)


def test_the_host_in_between_is_slower():
    size = 20 << 20
    peer, host = (prices("rtx-pro-6000-blackwell", pcie=way).collective("all_reduce", 2) for way in ("peer", "host"))
    assert 1.3 < host.seconds(size) / peer.seconds(size) < 4
