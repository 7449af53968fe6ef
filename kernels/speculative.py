"""Verify drafted tokens so that what comes out is distributed as the target model's own (Leviathan et al., ICML 2023;
Chen et al., 2023).

A drafted token is accepted with probability ``min(1, p / q)``, of the target's and the draft's probability for it. The
first that is not is replaced by a token drawn from ``max(p - q, 0)``, normalised, and the rest are dropped; if all are
accepted, one more is drawn from the target. Random numbers are those of ``kernels.random_numbers``, at the position of
the token decided.
"""

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.launch import LaunchConfig, operation
from kernels.random_numbers import (
    ACCEPT,
    RESAMPLE,
    exponentials,
    exponentials_kernel,
    random_words,
    random_words_kernel,
    uniforms,
    uniforms_kernel,
)


def verify_drafts_reference(
    drafts: torch.Tensor,
    draft_probabilities: torch.Tensor | None,
    target_probabilities: torch.Tensor,
    seeds: torch.Tensor,
    requests: torch.Tensor,
    positions: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens [rows, drafted + 1] in int32, -1 after the last; and how many of the drafts were accepted [rows]."""
    rows, drafted = drafts.shape
    vocabulary = target_probabilities.shape[2]
    out = torch.full((rows, drafted + 1), -1, dtype=torch.int32, device=drafts.device)
    accepted = torch.zeros(rows, dtype=torch.int32, device=drafts.device)
    going = torch.ones(rows, dtype=torch.bool, device=drafts.device)
    for step in range(drafted + 1):
        target = target_probabilities[:, step].double()
        draft = torch.zeros_like(target)
        passed = torch.zeros_like(going)
        if step < drafted:
            given = drafts[:, step] >= 0
            tokens = drafts[:, step].long().clamp(min=0)[:, None]
            if draft_probabilities is None:
                draft.scatter_(1, tokens, given[:, None].double())
            else:
                draft = torch.where(given[:, None], draft_probabilities[:, step].double(), draft)
            uniform = uniforms(random_words(seeds, requests, positions + step, ACCEPT, 1))
            passed = given & (uniform * draft.gather(1, tokens) < target.gather(1, tokens))[:, 0]
        remaining = (target - draft).clamp(min=0)
        remaining = torch.where(remaining.any(dim=1, keepdim=True), remaining, target)
        variates = exponentials(random_words(seeds, requests, positions + step, RESAMPLE, vocabulary))
        drawn = (remaining / variates).argmax(dim=1)
        chosen = torch.where(passed, drafts[:, min(step, drafted - 1)], drawn) if drafted else drawn
        out[:, step] = torch.where(going, chosen, -1)
        accepted += going & passed
        going &= passed
    return out, accepted


@triton.jit
def _verify_drafts(
    drafts,
    draft_probabilities,
    target_probabilities,
    seeds,
    requests,
    positions,
    out,
    accepted,
    rows,
    drafted,
    vocabulary,
    accept: tl.constexpr,
    resample: tl.constexpr,
    tile_rows: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    exists = row < rows
    seed = tl.load(seeds + row, mask=exists, other=0)
    request = tl.load(requests + row, mask=exists, other=0)
    position = tl.load(positions + row, mask=exists, other=0)

    count = tl.zeros((tile_rows,), tl.int32)
    going = exists
    for step in range(drafted):
        token = tl.load(drafts + row * drafted + step, mask=going, other=-1)
        going = going & (token >= 0)
        target = tl.load(
            target_probabilities + (row * (drafted + 1) + step) * vocabulary + token, mask=going, other=0.0
        )
        if draft_probabilities is None:
            draft = tl.full((tile_rows,), 1.0, tl.float32)
        else:
            draft = tl.load(draft_probabilities + (row * drafted + step) * vocabulary + token, mask=going, other=0.0)
        words = random_words_kernel(seed, request, position + step, 0, accept, tile_rows, 4)
        first = tl.sum(tl.where(tl.arange(0, 4)[None, :] == 0, uniforms_kernel(words), 0.0), axis=1)
        going = going & (first * draft < target)
        tl.store(out + row * (drafted + 1) + step, token, mask=going)
        count += going.to(tl.int32)
    tl.store(accepted + row, count, mask=exists)

    rejected = tl.load(drafts + row * drafted + count, mask=exists & (count < drafted), other=-1)
    target_row = target_probabilities + (row * (drafted + 1) + count) * vocabulary
    best = tl.full((tile_rows,), -1.0, tl.float32)
    drawn = tl.zeros((tile_rows,), tl.int32)
    best_of_target = best
    drawn_of_target = drawn
    for start in range(0, vocabulary, block):
        token = start + tl.arange(0, block)
        inside = exists[:, None] & (token < vocabulary)[None, :]
        target = tl.load(target_row[:, None] + token[None, :], mask=inside, other=0.0)
        if draft_probabilities is None:
            draft = (token[None, :] == rejected[:, None]).to(tl.float32)
        else:
            draft_row = draft_probabilities + (row * drafted + count) * vocabulary
            drawn_from_draft = inside & (rejected >= 0)[:, None]
            draft = tl.load(draft_row[:, None] + token[None, :], mask=drawn_from_draft, other=0.0)
        variates = exponentials_kernel(
            random_words_kernel(seed, request, position + count, start, resample, tile_rows, block)
        )
        score = tl.where(inside, tl.maximum(target - draft, 0.0) / variates, -1.0)
        better = tl.max(score, axis=1) > best
        drawn = tl.where(better, start + tl.argmax(score, axis=1), drawn)
        best = tl.maximum(best, tl.max(score, axis=1))
        # Where rounding leaves nothing of p - q, the target itself is drawn from.
        score = tl.where(inside, target / variates, -1.0)
        better = tl.max(score, axis=1) > best_of_target
        drawn_of_target = tl.where(better, start + tl.argmax(score, axis=1), drawn_of_target)
        best_of_target = tl.maximum(best_of_target, tl.max(score, axis=1))
    tl.store(out + row * (drafted + 1) + count, tl.where(best > 0.0, drawn, drawn_of_target), mask=exists)


def launch_config(vocabulary: int) -> LaunchConfig:
    """8192 probabilities at a time, 16 a thread; rows share a program where their vocabulary is below 2048."""
    block = max(4, min(8192, triton.next_power_of_2(vocabulary)))
    return LaunchConfig({"tile_rows": max(1, 2048 // block), "block": block}, max(8, block // 512), num_stages=1)


@operation(verify_drafts_reference, strided=("drafts", "draft_probabilities", "target_probabilities"))
def verify_drafts(
    drafts: torch.Tensor,
    draft_probabilities: torch.Tensor | None,
    target_probabilities: torch.Tensor,
    seeds: torch.Tensor,
    requests: torch.Tensor,
    positions: torch.Tensor,
    *,
    config: LaunchConfig | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens [rows, drafted + 1] in int32, -1 after the last; and how many of the drafts were accepted [rows].

    ``drafts`` [rows, drafted] are integers, -1 after the last of a row that has fewer. ``target_probabilities``
    [rows, drafted + 1, vocabulary] and ``draft_probabilities`` [rows, drafted, vocabulary] are float32; None stands for
    drafts that were certain (prompt look-up, a greedy draft model). ``positions`` [rows] are those of the first drafts.
    """
    rows, drafted = drafts.shape
    vocabulary = target_probabilities.shape[2]
    out = torch.full((rows, drafted + 1), -1, dtype=torch.int32, device=drafts.device)
    accepted = torch.empty(rows, dtype=torch.int32, device=drafts.device)
    config = config or launch_config(vocabulary)
    if rows:
        _verify_drafts[(triton.cdiv(rows, config.tiles["tile_rows"]),)](
            drafts.contiguous(),
            None if draft_probabilities is None else draft_probabilities.contiguous(),
            target_probabilities.contiguous(),
            seeds,
            requests,
            positions,
            out,
            accepted,
            rows,
            drafted,
            vocabulary,
            ACCEPT,
            RESAMPLE,
            **config.arguments(),
        )
    return out, accepted


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation."""
    types = {
        "drafts": "*i32",
        "target_probabilities": "*fp32",
        **dict.fromkeys(("seeds", "requests", "positions"), "*i64"),
        **dict.fromkeys(("out", "accepted"), "*i32"),
        **dict.fromkeys(("rows", "drafted", "vocabulary"), "i32"),
    }
    constants = {"accept": ACCEPT, "resample": RESAMPLE}
    configs = dict.fromkeys(CAPABILITIES, launch_config(131072))
    draft = "draft_probabilities"
    return [
        CompiledForm(_verify_drafts, "drawn drafts", {**types, draft: "*fp32"}, constants, configs, ("vocabulary",)),
        CompiledForm(_verify_drafts, "certain drafts", types, {**constants, draft: None}, configs, ("vocabulary",)),
    ]
