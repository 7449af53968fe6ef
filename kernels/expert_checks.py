"""Which experts the kernels of MoE models take."""

from typing import Any

import torch

from kernels.errors import require_form
from kernels.expert_sorting import SortedCopies
from kernels.moe_reference import ACTIVATIONS, ExpertWeights

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


def check_experts(operation_name: str, x: torch.Tensor, experts: ExpertWeights) -> None:
    """Raise ``UnsupportedFormError`` for a type or an activation that no kernel has."""
    require_form(operation_name, "type", x.dtype, DTYPES)
    require_form(operation_name, "activation", experts.activation, ACTIVATIONS)


def check_gate_up(x: torch.Tensor, experts: ExpertWeights, order: SortedCopies) -> None:
    """``check_experts`` for the first layer."""
    check_experts("expert_gate_up", x, experts)


def check_down(middle: torch.Tensor, experts: ExpertWeights, *_: Any, **__: Any) -> None:
    """``check_experts`` for the second layer."""
    check_experts("expert_down", middle, experts)
