"""The experts of an MoE model, and what they compute, written out."""

from dataclasses import dataclass

import torch

from kernels.expert_sorting import SortedCopies

ACTIVATIONS = ("silu", "clamped-swiglu")
_LIMIT = 7.0
_SLOPE = 1.702


@dataclass(frozen=True, slots=True)
class ExpertWeights:
    """The weights of all experts, rows as torch stores a linear layer's.

    ``gate_up`` is [experts, 2 * intermediate, hidden], gates first, ``down`` [experts, hidden, intermediate]; biases,
    where there are any, lack the last dimension. ``activation`` is ``"silu"``, ``silu(gate) * up``, or GPT-OSS's
    ``"clamped-swiglu"``: ``gate * sigmoid(1.702 gate) * (up + 1)`` with gate at most 7 and up between -7 and 7
    (recalled from its published code, which interleaves gates and ups; here they are apart).
    """

    gate_up: torch.Tensor
    down: torch.Tensor
    gate_up_bias: torch.Tensor | None = None
    down_bias: torch.Tensor | None = None
    activation: str = "silu"

    @property
    def experts(self) -> int:
        """How many there are."""
        return self.down.shape[0]

    @property
    def hidden(self) -> int:
        """The width of a token."""
        return self.down.shape[1]

    @property
    def intermediate(self) -> int:
        """The width between the two layers."""
        return self.down.shape[2]


def _gate_up(x: torch.Tensor, experts: ExpertWeights, expert: int) -> torch.Tensor:
    both = x.double() @ experts.gate_up[expert].double().T
    if experts.gate_up_bias is not None:
        both = both + experts.gate_up_bias[expert].double()
    gate, up = both.chunk(2, dim=1)
    if experts.activation == "silu":
        return torch.nn.functional.silu(gate) * up
    gate, up = gate.clamp(max=_LIMIT), up.clamp(-_LIMIT, _LIMIT)
    return gate * torch.sigmoid(_SLOPE * gate) * (up + 1)


def _down(middle: torch.Tensor, experts: ExpertWeights, expert: int) -> torch.Tensor:
    out = middle.double() @ experts.down[expert].double().T
    return out if experts.down_bias is None else out + experts.down_bias[expert].double()


def expert_gate_up_reference(x: torch.Tensor, experts: ExpertWeights, order: SortedCopies) -> torch.Tensor:
    """First layer and activation of each copy of ``x`` [tokens, hidden]: [copies, intermediate], sorted by expert."""
    starts = order.expert_starts.tolist()
    out = torch.empty((len(order.copies), experts.intermediate), dtype=x.dtype, device=x.device)
    for expert in range(experts.experts):
        places = slice(starts[expert], starts[expert + 1])
        tokens = order.copies[places].long() // order.copies_per_token
        out[places] = _gate_up(x[tokens], experts, expert).to(x.dtype)
    return out


def expert_down_reference(
    middle: torch.Tensor, experts: ExpertWeights, routing_weights: torch.Tensor, order: SortedCopies
) -> torch.Tensor:
    """Second layer of sorted copies times their routing weights: [1, tokens * k, hidden], in order of copies.

    ``middle`` is [copies, intermediate], ``routing_weights`` fp32 [tokens, k].
    """
    starts = order.expert_starts.tolist()
    out = torch.empty((1, len(order.copies), experts.hidden), dtype=middle.dtype, device=middle.device)
    weights = routing_weights.double().flatten()
    for expert in range(experts.experts):
        places = slice(starts[expert], starts[expert + 1])
        copies = order.copies[places].long()
        out[0, copies] = (_down(middle[places], experts, expert) * weights[copies, None]).to(middle.dtype)
    return out


def moe_reference(
    x: torch.Tensor, experts: ExpertWeights, routing_weights: torch.Tensor, expert_ids: torch.Tensor
) -> torch.Tensor:
    """The weighted sum, for each token of ``x`` [tokens, hidden], of the experts that it visits: [tokens, hidden].

    ``routing_weights`` fp32 and ``expert_ids`` int32 are [tokens, k].
    """
    out = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    for expert in range(experts.experts):
        token, choice = torch.nonzero(expert_ids == expert, as_tuple=True)
        result = _down(_gate_up(x[token], experts, expert), experts, expert)
        out.index_add_(0, token, result * routing_weights[token, choice, None].double())
    return out.to(x.dtype)
