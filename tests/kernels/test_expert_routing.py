import pytest
import torch

from kernels.errors import UnsupportedFormError
from kernels.expert_routing import route_top_k, route_top_k_reference
from tests.kernels.closeness import FLOAT_TYPES


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("renormalise", [True, False])
@pytest.mark.parametrize(("experts", "k", "shared"), [(8, 2, 0), (32, 4, 0), (160, 6, 2), (1, 1, 1), (3, 3, 0)])
def test_routing_equals_the_reference(
    device: torch.device, dtype: torch.dtype, renormalise: bool, experts: int, k: int, shared: int
) -> None:
    logits = (3 * torch.randn(5, experts, device=device)).to(dtype)
    weights, ids = route_top_k(logits, k, renormalise, shared)
    expected_weights, expected_ids = route_top_k_reference(logits, k, renormalise, shared)
    assert torch.equal(ids, expected_ids)
    torch.testing.assert_close(weights, expected_weights, rtol=1e-5, atol=1e-7)


def test_equal_logits_go_to_the_lower_number(device: torch.device) -> None:
    logits = torch.tensor([[1.0, 2.0, 2.0, 1.0, 2.0]], device=device)
    weights, ids = route_top_k(logits, 4)
    assert ids.tolist() == [[1, 2, 4, 0]]
    assert float(weights.sum()) == pytest.approx(1)


def test_no_tokens(device: torch.device) -> None:
    weights, ids = route_top_k(torch.empty(0, 8, device=device), 2, shared_experts=1)
    assert weights.shape == ids.shape == (0, 3)


def test_more_choices_than_experts_are_refused(device: torch.device) -> None:
    with pytest.raises(UnsupportedFormError, match="k 9"):
        route_top_k(torch.zeros(1, 8, device=device), 9)
