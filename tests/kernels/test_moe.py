import pytest
import torch

from kernels.errors import UnsupportedFormError
from kernels.expert_gemms import expert_down, expert_gate_up
from kernels.expert_routing import route_top_k
from kernels.expert_sorting import sort_tokens_by_expert
from kernels.launch import LaunchConfig, interpreted
from kernels.moe import moe, moe_reference, sum_copies, sum_copies_reference
from kernels.moe_reference import ExpertWeights, expert_down_reference, expert_gate_up_reference
from tests.kernels.closeness import FLOAT_TYPES, assert_close


def random_experts(
    experts: int,
    hidden: int,
    intermediate: int,
    dtype: torch.dtype,
    device: torch.device,
    biases: bool = False,
    activation: str = "silu",
) -> ExpertWeights:
    def random(*shape: int, scale: float) -> torch.Tensor:
        return (torch.randn(shape, device=device) * scale).to(dtype)

    return ExpertWeights(
        random(experts, 2 * intermediate, hidden, scale=hidden**-0.5),
        random(experts, hidden, intermediate, scale=intermediate**-0.5),
        random(experts, 2 * intermediate, scale=1.0) if biases else None,
        random(experts, hidden, scale=1.0) if biases else None,
        activation,
    )


def wider(experts: ExpertWeights) -> ExpertWeights:
    """The same weights in float64."""
    biases = (None if b is None else b.double() for b in (experts.gate_up_bias, experts.down_bias))
    return ExpertWeights(experts.gate_up.double(), experts.down.double(), *biases, experts.activation)


def assert_moe_equals(
    x: torch.Tensor, experts: ExpertWeights, routing: tuple[torch.Tensor, torch.Tensor], block_m: int | None
) -> None:
    config = LaunchConfig({"block_m": block_m}) if block_m else None
    out = moe(x, experts, *routing, config=config)
    assert_close(out, moe_reference(x.double(), wider(experts), *routing))
    assert torch.equal(moe(x, experts, *routing, config=config), out)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize(
    ("tokens", "k", "experts", "hidden", "intermediate", "block_m"),
    [
        (1, 2, 8, 64, 96, None),  # one token; most experts have none
        (3, 4, 4, 80, 48, 16),  # depths and columns that cross tiles
        (50, 2, 3, 64, 32, 32),
        (40, 1, 2, 48, 144, 64),
        (9, 3, 40, 32, 32, None),
    ],
)
def test_moe_equals_the_reference(
    device: torch.device,
    dtype: torch.dtype,
    tokens: int,
    k: int,
    experts: int,
    hidden: int,
    intermediate: int,
    block_m: int | None,
) -> None:
    x = torch.randn(tokens, hidden, device=device).to(dtype)
    routing = route_top_k(torch.randn(tokens, experts, device=device), k)
    assert_moe_equals(x, random_experts(experts, hidden, intermediate, dtype, device), routing, block_m)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_gpt_oss_has_biases_and_clamps(device: torch.device, dtype: torch.dtype) -> None:
    x = 8 * torch.randn(7, 45, device=device).to(dtype)
    experts = random_experts(4, 45, 45, dtype, device, biases=True, activation="clamped-swiglu")
    routing = route_top_k(torch.randn(7, 4, device=device), 2)
    assert_moe_equals(x, experts, routing, None)


@pytest.mark.parametrize("expert", [0, 4])
def test_all_tokens_may_visit_one_expert(device: torch.device, expert: int) -> None:
    x = torch.randn(40, 32, device=device).half()
    ids = torch.full((40, 1), expert, dtype=torch.int32, device=device)
    routing = torch.rand(40, 1, device=device), ids
    assert_moe_equals(x, random_experts(5, 32, 32, torch.float16, device), routing, 16)


def test_a_shared_expert_is_one_that_all_visit(device: torch.device) -> None:
    x = torch.randn(6, 32, device=device).half()
    routing = route_top_k(torch.randn(6, 8, device=device), 2, shared_experts=1)
    experts = random_experts(9, 32, 32, torch.float16, device)
    assert_moe_equals(x, experts, routing, None)


def test_a_split_depth_adds_up(device: torch.device) -> None:
    experts = random_experts(3, 32, 160, torch.float16, device, biases=True)
    x = torch.randn(5, 32, device=device).half()
    weights, ids = route_top_k(torch.randn(5, 3, device=device), 2)
    order = sort_tokens_by_expert(ids, 3, 16)
    middle = expert_gate_up(x, experts, order)
    assert_close(middle, expert_gate_up_reference(x.double(), wider(experts), order))
    tiles = {"block_m": 16, "block_n": 32, "block_k": 32, "group_m": 2, "split_k": 4}
    parts = expert_down(middle, experts, weights, order, config=LaunchConfig(tiles, num_stages=2))
    expected = expert_down_reference(middle.double(), wider(experts), weights, order)
    assert parts.shape == (4, 10, 32)
    assert_close(parts.double().sum(0).half(), expected[0])
    assert_close(sum_copies(parts, 2, torch.float16), sum_copies_reference(parts, 2, torch.float64))


def test_rows_may_be_apart_and_there_may_be_none(device: torch.device) -> None:
    experts = random_experts(3, 32, 32, torch.float16, device)
    wide = torch.randn(4, 48, device=device).half()
    assert_moe_equals(wide[:, :32], experts, route_top_k(torch.randn(4, 3, device=device), 2), None)
    none = torch.empty(0, 32, device=device).half()
    assert moe(none, experts, *route_top_k(torch.empty(0, 3, device=device), 2)).shape == (0, 32)


def test_refusals(device: torch.device) -> None:
    x = torch.randn(2, 32, device=device)
    weights, ids = route_top_k(torch.randn(2, 3, device=device), 2)
    with pytest.raises(UnsupportedFormError, match="activation gelu; it has silu, clamped-swiglu"):
        moe(x, random_experts(3, 32, 32, torch.float32, device, activation="gelu"), weights, ids)
    with pytest.raises(UnsupportedFormError, match="type"):
        moe(x.double(), random_experts(3, 32, 32, torch.float64, device), weights, ids)


@pytest.mark.skipif(interpreted(), reason="too large for the interpreter")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("tokens", [1, 64, 1500])
@pytest.mark.parametrize(
    ("experts", "k", "hidden", "intermediate", "biases"),
    [(8, 2, 1024, 3584, False), (128, 8, 2048, 768, False), (32, 4, 2880, 2880, True)],
)
def test_shipped_launches(
    device: torch.device,
    dtype: torch.dtype,
    tokens: int,
    experts: int,
    k: int,
    hidden: int,
    intermediate: int,
    biases: bool,
) -> None:
    x = torch.randn(tokens, hidden, device=device).to(dtype)
    routing = route_top_k(torch.randn(tokens, experts, device=device), k)
    assert_moe_equals(x, random_experts(experts, hidden, intermediate, dtype, device, biases), routing, None)
