"""Which experts a token visits, and with what weight."""

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.errors import require_form
from kernels.launch import LaunchConfig, operation


def route_top_k_reference(
    logits: torch.Tensor, k: int, renormalise: bool = True, shared_experts: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """The ``k`` likeliest experts of each token: weights fp32 and expert numbers int32, both [tokens, k + shared].

    Weights are the softmax of ``logits`` [tokens, experts], divided by their sum over the ``k`` if ``renormalise``; of
    equal logits the lower number wins. ``shared_experts`` more, numbered from ``experts`` on, are visited by every
    token with weight 1.
    """
    tokens, experts = logits.shape
    probabilities = torch.softmax(logits.double(), dim=1)
    chosen = torch.sort(probabilities, dim=1, descending=True, stable=True)
    weights, ids = chosen.values[:, :k], chosen.indices[:, :k]
    if renormalise:
        weights = weights / weights.sum(dim=1, keepdim=True)
    shared = torch.arange(experts, experts + shared_experts, device=logits.device).expand(tokens, -1)
    weights = torch.cat([weights, torch.ones_like(shared, dtype=weights.dtype)], dim=1)
    return weights.float(), torch.cat([ids, shared], dim=1).int()


@triton.jit
def _route_top_k(
    logits,
    weights,
    ids,
    experts,
    k: tl.constexpr,
    shared_experts: tl.constexpr,
    renormalise: tl.constexpr,
    columns: tl.constexpr,
    places: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    expert = tl.arange(0, columns)
    place = tl.arange(0, places)
    left = tl.load(logits + token * experts + expert, mask=expert < experts, other=-float("inf")).to(tl.float32)
    largest = tl.max(left, axis=0)
    denominator = tl.sum(tl.exp(left - largest), axis=0)
    chosen_ids = tl.where(place < k, 0, experts + place - k)
    chosen_weights = tl.where(place < k, 0.0, 1.0)
    chosen_sum = 0.0
    for number in tl.static_range(k):
        best = tl.argmax(left, axis=0, tie_break_left=True)
        weight = tl.exp(tl.max(left, axis=0) - largest)
        chosen_sum += weight
        chosen_ids = tl.where(place == number, best, chosen_ids)
        chosen_weights = tl.where(place == number, weight, chosen_weights)
        left = tl.where(expert == best, -float("inf"), left)
    divisor = chosen_sum if renormalise else denominator
    chosen_weights = tl.where(place < k, chosen_weights / divisor, chosen_weights)
    inside = place < k + shared_experts
    tl.store(weights + token * (k + shared_experts) + place, chosen_weights, mask=inside)
    tl.store(ids + token * (k + shared_experts) + place, chosen_ids, mask=inside)


_CONFIG = LaunchConfig(num_warps=1, num_stages=1)


def _check(logits: torch.Tensor, k: int, *_: Any, **__: Any) -> None:
    require_form("route_top_k", "k", k, range(1, logits.shape[1] + 1))


@operation(route_top_k_reference, _check, strided=("logits",))
def route_top_k(
    logits: torch.Tensor,
    k: int,
    renormalise: bool = True,
    shared_experts: int = 0,
    *,
    config: LaunchConfig | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The ``k`` likeliest experts of each token: weights fp32 and expert numbers int32, both [tokens, k + shared].

    Weights are the softmax of ``logits`` [tokens, experts], divided by their sum over the ``k`` if ``renormalise``; of
    equal logits the lower number wins. ``shared_experts`` more, numbered from ``experts`` on, are visited by every
    token with weight 1. Raises ``UnsupportedFormError`` for a ``k`` above the number of experts.
    """
    tokens, experts = logits.shape
    chosen = k + shared_experts
    weights = torch.empty((tokens, chosen), dtype=torch.float32, device=logits.device)
    ids = torch.empty((tokens, chosen), dtype=torch.int32, device=logits.device)
    if tokens:
        _route_top_k[(tokens,)](
            logits.contiguous(),
            weights,
            ids,
            experts,
            k=k,
            shared_experts=shared_experts,
            renormalise=renormalise,
            columns=triton.next_power_of_2(experts),
            places=triton.next_power_of_2(chosen),
            **(config or _CONFIG).arguments(),
        )
    return weights, ids


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernel, for ahead-of-time compilation."""
    configs = dict.fromkeys(CAPABILITIES, _CONFIG)
    forms = []
    for kind, experts, k, shared in (("bf16", 8, 2, 0), ("fp16", 128, 8, 0), ("fp32", 256, 8, 1)):
        types = {"logits": f"*{kind}", "weights": "*fp32", "ids": "*i32", "experts": "i32"}
        constants = {"k": k, "shared_experts": shared, "renormalise": True}
        constants |= {"columns": experts, "places": triton.next_power_of_2(k + shared)}
        forms.append(CompiledForm(_route_top_k, f"{kind} experts={experts} k={k}", types, constants, configs))
    return forms
