"""Sample the next token by temperature, top-k and top-p: a race of exponentials, without a sort.

Each token gets an exponential variate of its own, made from (seed, request, position, token); the token whose variate,
divided by its probability, is least wins with that probability (the Gumbel-max trick). Who wins among the kept tokens
therefore depends neither on the batch nor on how a kernel finds them. First all tokens race, many programs a row. If
the winner is surely among the kept, and mostly it is, that is all; otherwise the kept ones are found and race alone.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.errors import require_rows
from kernels.kept_tokens import kept_tokens, load_logits, lowest_of_both
from kernels.launch import LaunchConfig, operation
from kernels.random_numbers import SAMPLE, exponentials, exponentials_kernel, random_words, random_words_kernel


def sample_reference(
    logits: torch.Tensor,
    temperatures: torch.Tensor,
    top_ks: torch.Tensor,
    top_ps: torch.Tensor,
    seeds: torch.Tensor,
    requests: torch.Tensor,
    positions: torch.Tensor,
) -> torch.Tensor:
    """A token [rows] in int32 of each row of ``logits``; ``kernels.kept_tokens`` says among which."""
    kept, scaled = kept_tokens(logits, temperatures, top_ks, top_ps)
    variates = exponentials(random_words(seeds, requests, positions, SAMPLE, logits.shape[1]))
    return torch.where(kept, scaled - variates.log(), -torch.inf).argmax(dim=1).int()


@triton.jit
def _noise(seeds, requests, positions, row, first, purpose: tl.constexpr, block: tl.constexpr):
    """What a race adds to logits divided by the temperature: minus the logarithms of exponentials, [block]."""
    one = row + tl.arange(0, 1)
    keys = tl.load(seeds + one), tl.load(requests + one), tl.load(positions + one)
    words = random_words_kernel(keys[0], keys[1], keys[2], first, purpose, 1, block)
    return tl.reshape(-tl.log(exponentials_kernel(words)), (block,))


@triton.jit
def _race(
    logits,
    temperatures,
    seeds,
    requests,
    positions,
    peaks,
    lowests,
    masses,
    scores,
    tokens,
    vocabulary,
    row_stride,
    purpose: tl.constexpr,
    block: tl.constexpr,
):
    """Of one part of a row: the highest and lowest finite logit, the mass by the highest, the winner and its score."""
    row = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * block
    part = row * tl.num_programs(1) + tl.program_id(1)
    values = load_logits(logits + row * row_stride, first, vocabulary, block)
    temperature = tl.load(temperatures + row)
    finite = values > float("-inf")
    peak = tl.max(values)
    relative = tl.where(finite, values - peak, float("-inf"))
    if temperature > 0.0:
        relative /= temperature
        score = relative + _noise(seeds, requests, positions, row, first, purpose, block)
    else:
        score = relative
    tl.store(peaks + part, peak)
    tl.store(lowests + part, tl.min(tl.where(finite, values, float("inf"))))
    tl.store(masses + part, tl.sum(tl.exp(relative)))
    tl.store(scores + part, tl.max(score))
    tl.store(tokens + part, first + tl.argmax(score, axis=0))


@triton.jit
def _surely_kept(logits, token, peak, mass, top_k, top_p, vocabulary, inverse_temperature, block: tl.constexpr):
    """Whether top-k and top-p keep a token for all that one pass tells; ``mass`` is that of all tokens."""
    value = tl.load(logits + token).to(tl.float32)
    higher = tl.zeros((block,), tl.int32)
    mass_above = tl.zeros((block,), tl.float32)
    mass_equal = tl.zeros((block,), tl.float32)
    for first in range(0, vocabulary, block):
        values = load_logits(logits, first, vocabulary, block)
        weight = tl.exp((values - peak) * inverse_temperature)
        higher += (values > value).to(tl.int32)
        mass_above += tl.where(values > value, weight, 0.0)
        mass_equal += tl.where(values == value, weight, 0.0)
    above = tl.sum(mass_above.to(tl.float64))
    by_count = (top_k > 0) & (top_k < vocabulary)
    few = (not by_count) | (tl.sum(higher) < top_k)
    if by_count:  # what top-k keeps weighs no less than this
        mass = above + tl.sum(mass_equal.to(tl.float64))
    return few & ((top_p >= 1.0) | (above < mass * top_p.to(tl.float64)))


@triton.jit
def _race_from(
    logits,
    threshold,
    peak,
    inverse_temperature,
    seeds,
    requests,
    positions,
    row,
    vocabulary,
    purpose: tl.constexpr,
    block: tl.constexpr,
):
    """The winner among the tokens from ``threshold`` up."""
    best = float("-inf")
    token = 0
    for first in range(0, vocabulary, block):
        values = load_logits(logits, first, vocabulary, block)
        if tl.max(values) >= threshold:
            noise = _noise(seeds, requests, positions, row, first, purpose, block)
            score = tl.where(values >= threshold, (values - peak) * inverse_temperature + noise, float("-inf"))
            if tl.max(score) > best:
                best = tl.max(score)
                token = first + tl.argmax(score, axis=0)
    return token


@triton.jit
def _settle(
    logits,
    temperatures,
    top_ks,
    top_ps,
    seeds,
    requests,
    positions,
    peaks,
    lowests,
    masses,
    scores,
    tokens,
    out,
    vocabulary,
    row_stride,
    parts,
    purpose: tl.constexpr,
    block: tl.constexpr,
    block_parts: tl.constexpr,
):
    """The winner of all parts, if top-k and top-p surely keep it; else that of another race, of those they keep."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, block_parts)
    inside = part < parts
    part_peaks = tl.load(peaks + row * parts + part, mask=inside, other=float("-inf"))
    peak = tl.max(part_peaks)
    temperature = tl.load(temperatures + row)
    inverse = 1.0 / tl.where(temperature > 0.0, temperature, 1.0)
    lead = (part_peaks - peak) * inverse
    score = tl.load(scores + row * parts + part, mask=inside, other=float("-inf")) + lead
    winner = tl.argmax(score, axis=0)
    token = tl.load(tokens + row * parts + winner)

    top_k = tl.load(top_ks + row)
    top_p = tl.load(top_ps + row)
    if (temperature > 0.0) & (((top_k > 0) & (top_k < vocabulary)) | (top_p < 1.0)):
        logits += row * row_stride
        mass = tl.sum((tl.load(masses + row * parts + part, mask=inside, other=0.0) * tl.exp(lead)).to(tl.float64))
        if not _surely_kept(logits, token, peak, mass, top_k, top_p, vocabulary, inverse, block):
            lowest = tl.min(tl.load(lowests + row * parts + part, mask=inside, other=float("inf")))
            threshold = lowest_of_both(logits, lowest, peak, top_k, top_p, vocabulary, inverse, block)
            token = _race_from(
                logits, threshold, peak, inverse, seeds, requests, positions, row, vocabulary, purpose, block
            )
    tl.store(out + row, token)


def launch_config(vocabulary: int) -> LaunchConfig:
    """How many tokens a program races, and how many the second kernel takes at a time, by how many warps."""
    block = max(4, triton.next_power_of_2(vocabulary))
    tiles = {"race": min(2048, block), "settle": min(8192, block), "settle_warps": 16 if block >= 4096 else 4}
    return LaunchConfig(tiles, num_warps=4, num_stages=1)


def _race_config(config: LaunchConfig) -> LaunchConfig:
    return LaunchConfig({"block": config.tiles["race"]}, config.num_warps, config.num_stages)


def _settle_config(config: LaunchConfig, vocabulary: int) -> LaunchConfig:
    block_parts = triton.next_power_of_2(triton.cdiv(vocabulary, config.tiles["race"]))
    tiles = {"block": config.tiles["settle"], "block_parts": block_parts}
    return LaunchConfig(tiles, config.tiles["settle_warps"], config.num_stages)


def _check(logits: torch.Tensor, *_: Any, **__: Any) -> None:
    require_rows("sample", "logits", logits)


@operation(sample_reference, _check, strided=("logits",))
def sample(
    logits: torch.Tensor,
    temperatures: torch.Tensor,
    top_ks: torch.Tensor,
    top_ps: torch.Tensor,
    seeds: torch.Tensor,
    requests: torch.Tensor,
    positions: torch.Tensor,
    *,
    config: LaunchConfig | None = None,
) -> torch.Tensor:
    """A token [rows] in int32 of each row of ``logits``; ``kernels.kept_tokens`` says among which.

    ``logits`` are [rows, vocabulary] of any float type, ``temperatures`` and ``top_ps`` [rows] float32, ``top_ks``
    [rows] integers, ``seeds`` int64, ``requests`` and ``positions`` integers below 2**32. Masses are added up in
    float32, so a token whose mass above is within 1e-6 of top-p may be taken for kept or not.
    """
    rows, vocabulary = logits.shape
    device = logits.device
    config = config or launch_config(vocabulary)
    parts = triton.cdiv(vocabulary, config.tiles["race"])
    peaks, lowests, masses, scores = torch.empty((4, rows, parts), dtype=torch.float32, device=device)
    tokens = torch.empty((rows, parts), dtype=torch.int32, device=device)
    out = torch.empty(rows, dtype=torch.int32, device=device)
    if rows:
        keys = (seeds, requests, positions)
        found = (peaks, lowests, masses, scores, tokens)
        sizes = (vocabulary, logits.stride(0))
        race, settle = _race_config(config), _settle_config(config, vocabulary)
        _race[(rows, parts)](logits, temperatures, *keys, *found, *sizes, SAMPLE, **race.arguments())
        _settle[(rows,)](
            logits, temperatures, top_ks, top_ps, *keys, *found, out, *sizes, parts, SAMPLE, **settle.arguments()
        )
    return out


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation."""
    found = dict.fromkeys(("peaks", "lowests", "masses", "scores"), "*fp32") | {"tokens": "*i32"}
    keys = {"seeds": "*i64", "requests": "*i64", "positions": "*i64"}
    choices = {"temperatures": "*fp32", "top_ks": "*i32", "top_ps": "*fp32"}
    sizes = {"vocabulary": "i32", "row_stride": "i32"}
    vocabulary = 131072
    config = launch_config(vocabulary)
    forms = []
    for kind in ("fp16", "bf16", "fp32"):
        types = {"logits": f"*{kind}", **choices, **keys, **found, "out": "*i32", **sizes, "parts": "i32"}
        for kernel, kernel_config in ((_race, _race_config(config)), (_settle, _settle_config(config, vocabulary))):
            of_kernel = {name: types[name] for name in kernel.arg_names if name in types}
            configs = dict.fromkeys(CAPABILITIES, kernel_config)
            forms.append(CompiledForm(kernel, kind, of_kernel, {"purpose": SAMPLE}, configs, tuple(sizes)))
    return forms
