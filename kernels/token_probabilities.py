"""Probabilities of tokens as temperature, top-k and top-p leave them: what speculative verification compares."""

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.errors import require_rows
from kernels.kept_tokens import kept_tokens, load_logits, lowest_of_both
from kernels.launch import LaunchConfig, operation


def token_probabilities_reference(
    logits: torch.Tensor, temperatures: torch.Tensor, top_ks: torch.Tensor, top_ps: torch.Tensor
) -> torch.Tensor:
    """Float32 probabilities [rows, vocabulary]; ``kernels.kept_tokens`` says which tokens have any."""
    kept, scaled = kept_tokens(logits, temperatures, top_ks, top_ps)
    return torch.softmax(scaled.masked_fill(~kept, -torch.inf), dim=1).float()


@triton.jit
def _token_probabilities(logits, temperatures, top_ks, top_ps, out, vocabulary, row_stride, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits += row * row_stride
    out += row * vocabulary
    temperature = tl.load(temperatures + row)
    highest = tl.full((block,), float("-inf"), tl.float32)
    least = tl.full((block,), float("inf"), tl.float32)
    for first in range(0, vocabulary, block):
        values = load_logits(logits, first, vocabulary, block)
        highest = tl.maximum(highest, values)
        least = tl.minimum(least, tl.where(values == float("-inf"), float("inf"), values))
    peak = tl.max(highest)
    if temperature == 0.0:
        chosen = tl.full((block,), vocabulary, tl.int32)
        for first in range(0, vocabulary, block):
            values = load_logits(logits, first, vocabulary, block)
            chosen = tl.minimum(chosen, tl.where(values == peak, first + tl.arange(0, block), vocabulary))
        token = tl.min(chosen)
        for first in range(0, vocabulary, block):
            tokens = first + tl.arange(0, block)
            tl.store(out + tokens, (tokens == token).to(tl.float32), mask=tokens < vocabulary)
    else:
        inverse = 1.0 / temperature
        threshold = lowest_of_both(
            logits, tl.min(least), peak, tl.load(top_ks + row), tl.load(top_ps + row), vocabulary, inverse, block
        )
        mass = tl.zeros((block,), tl.float32)
        for first in range(0, vocabulary, block):
            values = load_logits(logits, first, vocabulary, block)
            mass += tl.where(values >= threshold, tl.exp((values - peak) * inverse), 0.0)
        normal = 1.0 / tl.sum(mass)
        for first in range(0, vocabulary, block):
            tokens = first + tl.arange(0, block)
            values = load_logits(logits, first, vocabulary, block)
            probability = tl.where(values >= threshold, tl.exp((values - peak) * inverse) * normal, 0.0)
            tl.store(out + tokens, probability, mask=tokens < vocabulary)


def launch_config(vocabulary: int) -> LaunchConfig:
    """A program goes over a row, 4096 tokens at a time, four a thread."""
    block = min(4096, triton.next_power_of_2(vocabulary))
    return LaunchConfig({"block": block}, num_warps=max(4, block // 128), num_stages=1)


def _check(logits: torch.Tensor, *_: Any, **__: Any) -> None:
    require_rows("token_probabilities", "logits", logits)


@operation(token_probabilities_reference, _check, strided=("logits",))
def token_probabilities(
    logits: torch.Tensor,
    temperatures: torch.Tensor,
    top_ks: torch.Tensor,
    top_ps: torch.Tensor,
    *,
    config: LaunchConfig | None = None,
) -> torch.Tensor:
    """Float32 probabilities [rows, vocabulary]; ``kernels.kept_tokens`` says which tokens have any.

    ``logits`` are [rows, vocabulary] of any float type; ``temperatures`` and ``top_ps`` [rows] are float32, ``top_ks``
    [rows] integers.
    """
    rows, vocabulary = logits.shape
    out = torch.empty((rows, vocabulary), dtype=torch.float32, device=logits.device)
    if rows:
        _token_probabilities[(rows,)](
            logits,
            temperatures,
            top_ks,
            top_ps,
            out,
            vocabulary,
            logits.stride(0),
            **(config or launch_config(vocabulary)).arguments(),
        )
    return out


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation."""
    configs = dict.fromkeys(CAPABILITIES, launch_config(131072))
    types = {"temperatures": "*fp32", "top_ks": "*i32", "top_ps": "*fp32", "out": "*fp32"}
    sizes = ("vocabulary", "row_stride")
    return [
        CompiledForm(
            _token_probabilities,
            kind,
            {"logits": f"*{kind}", **types, **dict.fromkeys(sizes, "i32")},
            {},
            configs,
            sizes,
        )
        for kind in ("fp16", "bf16", "fp32")
    ]
