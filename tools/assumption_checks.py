"""How far prices are from what was measured where they rest on an assumption: parts of kernel-fits.md."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from calibrate.importers import llmservingsim
from calibrate.samples import ATTENTION, SampleTable
from simcore.cost.calibrated import KernelProfile, load_profile

_DATASHEET = "rtx-pro-6000-blackwell"


def unequal_contexts(profiles: list[KernelProfile]) -> Iterator[str]:
    """How far latency at the mean context is from the mean of latencies, over contexts spread as in a real batch."""
    yield "| accelerator | batch | mean context | difference |"
    yield "|---|---:|---:|---:|"
    draws = np.random.default_rng(0).lognormal(-np.log(2) / 2, np.sqrt(np.log(2)), 64)
    draws /= draws.mean()
    for profile in profiles:
        price = profile.generation_attention("bf16", 32, 8, 128)
        if price is None or profile.engine != "vllm":
            continue
        for batch, context in ((16, 1024), (64, 1024), (64, 4096), (256, 1024)):
            alike = price.seconds(batch, batch * context)
            spread = np.mean([price.seconds(batch, batch * context * draw) for draw in draws])
            yield f"| {profile.accelerator} ({profile.version}) | {batch} | {context:,} | {alike / spread - 1:+.1%} |"


def linear_attention() -> Iterator[str]:
    """Prices of two accelerators that differ in memory alone, which tells a busy machine from a quiet one."""
    yield "| profile | tokens of a launch | launches | median | P90 | above 1.05 |"
    yield "|---|---:|---:|---:|---:|---:|"
    heads = [(key_heads, group * key_heads, 128, 128) for key_heads in (1, 2, 4, 8, 16) for group in (1, 2, 3, 4)]
    for name in ("sglang-0.5.14", "trtllm-1.3.0rc20", "vllm-0.24.0"):
        older, newer = load_profile("h100-sxm", name), load_profile("h200-sxm", name)
        prices = [(older.linear_attention(*shape), newer.linear_attention(*shape)) for shape in heads]
        both = [(one, other) for one, other in prices if one is not None and other is not None]
        for tokens in (512, 2048, 8192, 32768):
            ratios = np.array(
                [
                    other.chunks_seconds(prompts, tokens) / one.chunks_seconds(prompts, tokens)
                    for one, other in both
                    for prompts in (1, 4, 16)
                ]
            )
            figures = f"{np.median(ratios):.2f} | {np.quantile(ratios, 0.9):.2f} | {(ratios > 1.05).mean():.0%}"
            yield f"| {name} | {tokens:,} | {len(ratios)} | {figures} |"


def windows(profiles: list[KernelProfile]) -> Iterator[str]:
    """How far full attention over as many pairs is from measured windows, of 8 to 64 heads, 8 to each KV head."""
    off: dict[str, list[float]] = {}
    for profile in profiles:
        for kv_dtype, head_dim, window in profile.context_families:
            if window == 0 or (kv_dtype, head_dim, 0) not in profile.context_families:
                continue
            for heads in (8, 16, 32, 64):
                shape = kv_dtype, heads, heads // 8, head_dim
                own, full = profile.context_attention(*shape, window), profile.context_attention(*shape)
                decode, full_decode = profile.generation_attention(*shape, window), profile.generation_attention(*shape)
                if own is None or full is None or decode is None or full_decode is None:
                    continue
                stands_in = replace(full, window=window, of_full=True)
                for tokens in (64, 128, 512, 1024, 4096, 8192):
                    if not own.inside(tokens):
                        continue
                    where = "prompts within the window" if tokens <= window else "longer prompts"
                    off.setdefault(where, []).append(stands_in.seconds(tokens) / own.seconds(tokens))
                for batch in (8, 64, 256):
                    if decode.inside(batch, batch * window):
                        ratio = full_decode.seconds(batch, batch * window) / decode.seconds(batch, batch * window)
                        off.setdefault("decodes with full windows", []).append(ratio)
    yield "| | cases | median error | P90 | bias |"
    yield "|---|---:|---:|---:|---:|"
    for where, ratios in off.items():
        yield f"| {where} | {len(ratios)} | {_errors(np.log(np.array(ratios)))} |"


def prefixes(data: Path) -> Iterator[str]:
    """Chunks over prefixes, measured, against what the profile without prefixes infers."""
    inferring = load_profile(_DATASHEET, "vllm-0.24.0")
    yield "| chunk | prefix | points | median error | P90 | bias |"
    yield "|---:|---:|---:|---:|---:|---:|"
    logs, tokens, prefixes = [], [], []
    for samples in _tables(data, "context_attention"):
        shape = {name: samples.columns[name][0] for name in ATTENTION}
        price = inferring.context_attention(
            str(shape["kv_dtype"]), int(shape["heads"]), int(shape["kv_heads"]), int(shape["head_dim"])
        )
        assert price is not None
        for chunk, prefix, latency_s in zip(
            samples.columns["tokens"].tolist(), samples.columns["prefix"].tolist(), samples.latency_s, strict=True
        ):
            logs.append(np.log(price.seconds(chunk, prefix) / latency_s))
            tokens.append(chunk)
            prefixes.append(prefix)
    error, chunk, prefix = np.array(logs), np.array(tokens), np.array(prefixes)
    bands = (("any", 0, 1 << 30, 0, 0), ("up to 128", 0, 128, 1, 1 << 30), ("129 to 512", 129, 512, 1, 1 << 30))
    for name, least, most, shortest, longest in (*bands, ("over 512", 513, 1 << 30, 1, 1 << 30)):
        chosen = (chunk >= least) & (chunk <= most) & (prefix >= shortest) & (prefix <= longest)
        yield f"| {name} | {'any' if longest else 'none'} | {chosen.sum()} | {_errors(error[chosen])} |"


def mixed(data: Path) -> Iterator[str]:
    """A chunk and decodes in one launch against the sum of their prices."""
    profile = load_profile(_DATASHEET, "vllm-0.19.0")
    yield "| decodes | priced as measured | points | median error | P90 | bias |"
    yield "|---:|---|---:|---:|---:|---:|"
    errors: dict[tuple[int, int], list[float]] = {}
    for samples in _tables(data, "mixed_attention"):
        columns = samples.columns
        shape = (
            str(columns["kv_dtype"][0]),
            int(columns["heads"][0]),
            int(columns["kv_heads"][0]),
            int(columns["head_dim"][0]),
        )
        chunks, decodes = profile.context_attention(*shape), profile.generation_attention(*shape)
        assert chunks is not None
        assert decodes is not None
        beside = profile.mixed_generation(*shape)
        assert beside is not None
        floor_s = chunks.seconds(1)
        rows = zip(
            *(columns[name].tolist() for name in ("tokens", "prefix", "batch", "context")),
            samples.latency_s,
            strict=True,
        )
        for tokens, prefix, batch, context, latency_s in rows:
            chunk_s = chunks.seconds(tokens, prefix) - floor_s
            for way, price in ((0, decodes), (1, beside)):
                priced = chunk_s + price.seconds(batch, batch * context)
                errors.setdefault((batch, way), []).append(float(np.log(priced / latency_s)))
    for batch, way in sorted(errors):
        logs = np.array(errors[batch, way])
        yield f"| {batch} | {('alone', 'beside a chunk')[way]} | {len(logs):,} | {_errors(logs)} |"


def other_experts(data: Path) -> Iterator[str]:
    """Experts measured by how many were active against those of another version, all of which tokens in turn reach."""
    (samples,) = _tables(data, "active_experts")
    columns = samples.columns
    width = int(columns["hidden"][0]), int(columns["intermediate"][0]), int(columns["experts_per_token"][0])
    experts = int(columns["active_experts"].max())
    price = load_profile(_DATASHEET, "vllm-0.24.0").moe("bf16", *width, experts, distribution="balanced")
    assert price is not None
    all_active = samples.select(columns["active_experts"] == experts)
    tokens = all_active.columns["tokens"].tolist()
    logs = np.log([price.seconds(count) for count in tokens] / all_active.latency_s)
    yield "On the RTX PRO 6000 the profile of vLLM 0.24 is the fallback profile for experts of that of vLLM 0.19."
    yield f"This is its error for all {experts} experts of a model (hidden size {width[0]}, {width[1]} wide) as vLLM"
    yield f"0.19 runs them, with {min(tokens)} to {max(tokens):,} tokens dealt out in turn."
    yield ""
    yield "| points | median error | P90 | bias |"
    yield "|---:|---:|---:|---:|"
    yield f"| {len(logs)} | {_errors(logs)} |"


def _tables(data: Path, kind: str) -> list[SampleTable]:
    tables = llmservingsim.read_device(data / "llmservingsim", "RTXPRO6000")
    return [table for table in tables if table.kind == kind]


def _errors(logs: np.ndarray) -> str:
    relative = np.abs(np.expm1(logs))
    return f"{np.median(relative):.1%} | {np.quantile(relative, 0.9):.1%} | {logs.mean():+.1%}"
