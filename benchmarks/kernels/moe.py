"""MoE layers: the shapes of well-known models from one token to a prefill of thousands."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import cycle, product

import torch

from kernels.case import Case, Run, Sweep, first_tensor
from kernels.expert_gemms import expert_down, expert_gate_up
from kernels.expert_launch import down_config, gate_up_config, rows_per_tile
from kernels.expert_sorting import SortedCopies, max_tiles, sort_tokens_by_expert
from kernels.launch import LaunchConfig
from kernels.moe import moe
from kernels.moe_reference import ExpertWeights

_ORDERS = 8
_TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class Experts:
    """The experts of one layer of a model."""

    experts: int
    k: int
    hidden: int
    intermediate: int
    activation: str = "silu"
    biases: bool = False

    def weights(self, kind: str, device: torch.device) -> ExpertWeights:
        """Fresh random weights."""

        def random(*shape: int) -> torch.Tensor:
            return torch.randn(shape, dtype=_TYPES[kind], device=device).mul_(0.02)

        return ExpertWeights(
            random(self.experts, 2 * self.intermediate, self.hidden),
            random(self.experts, self.hidden, self.intermediate),
            random(self.experts, 2 * self.intermediate) if self.biases else None,
            random(self.experts, self.hidden) if self.biases else None,
            self.activation,
        )

    def balanced_ids(self, tokens: int, device: torch.device) -> torch.Tensor:
        """Experts [tokens, k], all different for a token, and each visited as often as any other or once more."""
        order = torch.randperm(self.experts, device=device)
        visits = torch.arange(tokens * self.k, device=device) % self.experts
        return order[visits].view(tokens, self.k).int()

    def active(self, tokens: int) -> int:
        """The experts that so many tokens visit."""
        return min(self.experts, tokens * self.k)


MIXTRAL = Experts(8, 2, 4096, 14336)
QWEN3_30B = Experts(128, 8, 2048, 768)
QWEN3_235B = Experts(128, 8, 4096, 1536)
DEEPSEEK_V3 = Experts(256, 8, 7168, 2048)
GPT_OSS_20B = Experts(32, 4, 2880, 2880, "clamped-swiglu", biases=True)
GPT_OSS_120B = Experts(128, 4, 2880, 2880, "clamped-swiglu", biases=True)
_TOY = Experts(6, 2, 64, 48)


def _prepare(layer: Experts, kind: str, tokens: int, device: torch.device) -> Run:
    experts = layer.weights(kind, device)
    x = torch.randn(tokens, layer.hidden, device=device).to(_TYPES[kind])
    ids = layer.balanced_ids(tokens, device)
    routing_weights = torch.full(ids.shape, 1 / layer.k, device=device)
    return lambda: moe(x, experts, routing_weights, ids)


def _case(layer: Experts, tokens: int, kind: str = "bf16") -> Case:
    hidden, intermediate = layer.hidden, layer.intermediate
    plain = layer.activation == "silu"
    shape = {"tokens": tokens, "experts": layer.experts, "k": layer.k}
    sample: dict[str, int | str] = {
        "dtype": kind,
        "distribution": "balanced",
        "hidden": hidden,
        "intermediate": intermediate,
        "experts_per_token": layer.k,
        "experts": layer.experts,
        "tensor_parallel": 1,
        "expert_parallel": 1,
        "tokens": tokens,
    }
    return Case(
        kernel="moe",
        form=layer.activation,
        dtype=kind,
        shape={**shape, "hidden": hidden, "intermediate": intermediate},
        prepare=partial(_prepare, layer, kind, tokens),
        bytes_moved=2 * (3 * layer.active(tokens) * hidden * intermediate + 2 * tokens * hidden),
        operations=6 * tokens * layer.k * hidden * intermediate,
        kind="moe" if plain else None,
        sample=sample if plain else None,
    )


def cases(toy: bool) -> list[Case]:
    """The shapes that are timed; routing is balanced, and sorting the tokens is part of the time."""
    if toy:
        return [_case(_TOY, tokens, "fp16") for tokens in (1, 20)]
    spread = (1, 4, 16, 64, 256, 1024, 4096)
    found = [_case(layer, tokens) for layer in (MIXTRAL, QWEN3_30B) for tokens in (*spread, 8192)]
    found += [_case(layer, tokens) for layer in (QWEN3_235B, DEEPSEEK_V3) for tokens in spread]
    return found + [_case(layer, tokens) for layer in (GPT_OSS_20B, GPT_OSS_120B) for tokens in (1, 64, 1024, 4096)]


def _prepare_sweep(layer: Experts, tokens: int, second: bool, device: torch.device) -> Callable[[LaunchConfig], Run]:
    """One of the two GEMMs. Calls rotate among routings, so that few active experts do not stay in the cache."""
    experts = layer.weights("bf16", device)
    ids = [layer.balanced_ids(tokens, device) for _ in range(_ORDERS)]
    x = torch.randn(tokens, layer.hidden, device=device).bfloat16()
    middle = torch.randn(tokens * layer.k, layer.intermediate, device=device).bfloat16()
    routing_weights = torch.full((tokens, layer.k), 1 / layer.k, device=device)

    def launch(config: LaunchConfig) -> Run:
        block_m = config.tiles["block_m"]
        orders = cycle([sort_tokens_by_expert(each, layer.experts, block_m) for each in ids])

        def run(order: SortedCopies) -> object:
            if second:
                return expert_down(middle, experts, routing_weights, order, config=config)
            return expert_gate_up(x, experts, order, config=config)

        return lambda: run(next(orders))

    return launch


def _shipped(layer: Experts, tokens: int, second: bool) -> LaunchConfig:
    copies = tokens * layer.k
    block_m = rows_per_tile(copies, layer.experts)
    if not second:
        return gate_up_config(block_m, layer.hidden, 2, 90)
    most_tiles = max_tiles(copies, layer.experts, block_m)
    return down_config(block_m, most_tiles, layer.hidden, layer.intermediate, 2, 90)


def _sum_of_parts(result: object) -> torch.Tensor:
    """Copies [copies, columns], of which the second layer may leave several parts."""
    out = first_tensor(result)
    return out.float().sum(0) if out.ndim == 3 else out


def _sweep_case(layer: Experts, tokens: int, second: bool) -> Case:
    layers = 1 if second else 2
    weights = layers * layer.active(tokens) * layer.hidden * layer.intermediate
    shape = {"tokens": tokens, "experts": layer.experts, "k": layer.k}
    return Case(
        kernel="expert_down" if second else "expert_gate_up",
        form=layer.activation,
        dtype="bf16",
        shape={**shape, "hidden": layer.hidden, "intermediate": layer.intermediate},
        prepare=partial(_prepare, layer, "bf16", tokens),
        bytes_moved=2 * (weights + tokens * layer.k * (layer.hidden + layer.intermediate)),
        operations=2 * layers * tokens * layer.k * layer.hidden * layer.intermediate,
    )


def _candidate(
    block_m: int, block_n: int, block_k: int, group_m: int, num_warps: int, num_stages: int, split_k: int | None
) -> LaunchConfig:
    split = {} if split_k is None else {"split_k": split_k}
    tiles = {"block_m": block_m, "block_n": block_n, "block_k": block_k, "group_m": group_m, **split}
    return LaunchConfig(tiles, num_warps, num_stages)


def _decode_candidates(second: bool, splits: tuple[int, ...] = (1,)) -> list[LaunchConfig]:
    columns = (64, 128, 256) if second else (32, 64, 128)
    return [
        _candidate(16, block_n, block_k, 1, num_warps, num_stages, split_k if second else None)
        for block_n, (block_k, num_stages), num_warps, split_k in product(
            columns, ((64, 4), (64, 6), (128, 3), (128, 4), (256, 3)), (4, 8), splits if second else (1,)
        )
        if block_n * block_k * (1 if second else 2) <= 32768
    ]


def _middle_candidates(second: bool) -> list[LaunchConfig]:
    columns = (64, 128, 256) if second else (64, 128)
    return [
        _candidate(block_m, block_n, block_k, group_m, num_warps, num_stages, 1 if second else None)
        for block_m, block_n, (block_k, num_stages), group_m, num_warps in product(
            (32, 64, 128), columns, ((64, 3), (64, 4), (128, 3)), (4,), (4, 8)
        )
        if block_m * block_n < 128 * 256
    ]


def _prefill_candidates(second: bool) -> list[LaunchConfig]:
    columns = ((128, 8), (256, 8), (128, 4)) if second else ((64, 4), (64, 8), (128, 8))
    return [
        _candidate(block_m, block_n, 64, group_m, num_warps, num_stages, 1 if second else None)
        for block_m, (block_n, num_warps), group_m, num_stages in product((64, 128), columns, (1, 8, 32), (3, 4))
    ]


def sweeps() -> list[Sweep]:
    """The launches to choose among, for either GEMM."""

    def sweep(layer: Experts, tokens: int, second: bool, candidates: list[LaunchConfig]) -> Sweep:
        case = _sweep_case(layer, tokens, second)
        prepare = partial(_prepare_sweep, layer, tokens, second)
        return Sweep(case, candidates, prepare, _shipped(layer, tokens, second), _sum_of_parts)

    found = []
    for second in (False, True):
        found += [
            sweep(QWEN3_30B, 1, second, _decode_candidates(second, (1, 2))),
            sweep(QWEN3_30B, 64, second, _decode_candidates(second)),
            sweep(MIXTRAL, 1, second, _decode_candidates(second, (4, 8))),
            sweep(QWEN3_30B, 1024, second, _middle_candidates(second)),
            sweep(QWEN3_30B, 8192, second, _prefill_candidates(second)),
            sweep(MIXTRAL, 4096, second, _prefill_candidates(second)),
        ]
    return found
