"""Mooncake: one KV cache for all nodes, against one for each."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from dashboard.figures.chart import Chart, Series
from experiments.cache_replay import CachedPrompt, prompts_of, replay_cache
from papers.harness.simulating import poisson
from papers.harness.study import Cell, Figures, Measured, Size, Study
from papers.harness.traces import public_trace
from policies.registry import policy_class
from simcore.build.simulation import Simulation
from simcore.models import load_model
from simcore.workload.traces import read_trace

TRACES = {
    "published": ("mooncake-conversation", "mooncake/conversation_trace.jsonl"),
    "synthetic": ("mooncake-synthetic", "mooncake/synthetic_trace.jsonl"),
}
BLOCK = 512
NODES = 10
MILLION = 1_000_000
NODE_TOKENS = 3 * MILLION
CAPACITIES = (1, 3, 10, 30, 50)
SYSTEMS = ("lru", "lfu", "length-aware")


@cache
def _prompts(setup: str, requests: int) -> tuple[CachedPrompt, ...]:
    trace = read_trace(public_trace(*TRACES[setup]), limit=requests)
    assert trace.contents is not None
    return tuple(prompts_of(trace.contents, BLOCK))


def _hits(prompts: Sequence[CachedPrompt], tokens: int | None, eviction: str) -> int:
    blocks = None if tokens is None else tokens // BLOCK
    return replay_cache(
        prompts, BLOCK, blocks, policy_class("eviction", eviction)(), load_model("llama-3.1-70b")
    ).hit_tokens


def _global_over_local(prompts: Sequence[CachedPrompt], node_tokens: int, eviction: str) -> float:
    """Hits of a cache as large as all nodes' together over those of a cache on each; requests go round in turn."""
    local = sum(_hits(prompts[node::NODES], node_tokens, eviction) for node in range(NODES))
    return _hits(prompts, NODES * node_tokens, eviction) / local


def _routed_by_content(prompts: Sequence[CachedPrompt], node_tokens: int, eviction: str) -> float:
    """The same where requests go to nodes by a block of theirs that turns of a conversation share."""
    node_of: dict[int, int] = {}
    shares: list[list[CachedPrompt]] = [[] for _ in range(NODES)]
    for prompt in prompts:
        shares[node_of.setdefault(_told_apart(prompt), len(node_of) % NODES)].append(prompt)
    return _hits(prompts, NODES * node_tokens, eviction) / sum(_hits(share, node_tokens, eviction) for share in shares)


def _told_apart(prompt: CachedPrompt) -> int:
    """The key of the ninth block, or the last of a shorter prompt: the first ones are of a system prompt."""
    return prompt.keys[min(8, len(prompt.keys) - 1)]


def _node_tokens(accelerator: str) -> int:
    """Tokens that the KV memory of a node of eight holds."""
    one = {"name": "fixed", "tokens": 1}
    document = {
        "model": "llama-3.1-70b",
        "cluster": {"accelerator": accelerator, "tensor_parallel": 8},
        "workload": {**poisson(1, 1.0), "prompt_tokens": one, "output_tokens": one},
    }
    simulation = Simulation.prepare(document, Path())
    return simulation.total_blocks * simulation.scenario.memory.block_size_tokens


def measure(cell: Cell) -> Figures:
    """Hit rates by capacity, and what a cache for all nodes finds over one for each."""
    prompts = _prompts("published" if cell.setup in ("8 H100", "8 B200") else cell.setup, cell.size.requests)
    if cell.setup in ("8 H100", "8 B200"):
        tokens = _node_tokens("h100-sxm" if cell.setup == "8 H100" else "b200")
        return {
            "global over local": _global_over_local(prompts, tokens, cell.system),
            "million tokens": tokens / MILLION,
        }
    total = sum(prompt.tokens for prompt in prompts)
    most = _hits(prompts, None, cell.system)
    figures = {f"hit rate at {size}": _hits(prompts, size * MILLION, cell.system) / total for size in CAPACITIES}
    return figures | {
        "hit rate": most / total,
        "3 million over most": figures["hit rate at 3"] * total / most,
        "50 million over most": figures["hit rate at 50"] * total / most,
        "global over local": _global_over_local(prompts, NODE_TOKENS, cell.system),
        "global over routed": _routed_by_content(prompts, NODE_TOKENS, cell.system),
    }


def charts(measured: Measured, curves: Mapping[str, Any]) -> Sequence[Chart]:
    """Hit rates over capacity as in figure 9, and global over local caches as in figure 10."""
    rates = [
        Series(
            f"{name}, {eviction}",
            CAPACITIES,
            [measured.mean(setup, eviction, f"hit rate at {size}") for size in CAPACITIES],
        )
        for setup, name in (("published", "conversation"), ("synthetic", "synthetic"))
        for eviction in ("lru", "length-aware")
    ]
    names = ("conversation", "synthetic")
    published = Series("ratio", names, [curves["global over local"][name] for name in names], published=True)
    ours = [measured.mean(setup, "lru", "global over local") for setup in TRACES]
    ratio = [published, Series("ratio", names, ours)]
    return [
        Chart("Prompt tokens found", "capacity (million tokens)", "share", rates, log_x=True),
        Chart("Hits of a global cache over local ones", "trace", "ratio", ratio, "bars"),
    ]


STUDY = Study(
    cells={"published": SYSTEMS, "synthetic": SYSTEMS, "8 H100": ("lru",), "8 B200": ("lru",)},
    measure=measure,
    charts=charts,
    full=Size(requests=1_000_000, seeds=1),
    smoke=Size(requests=3_000, seeds=1),
)
