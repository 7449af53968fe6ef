"""The comparisons of ``docs/results/memory.md``: capacity against stated ones, memory use against a published one."""

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from experiments.unpaged_memory.address_space import AddressSpace, Buddy
from experiments.unpaged_memory.contiguous import (
    ContiguousKv,
    KvAllocator,
    PagedKv,
    reserve_exact,
    reserve_longest,
    reserve_power_of_two,
)
from experiments.unpaged_memory.fragmentation import MemoryUse, replay_memory_use
from servetwin.api import prepare
from simcore.cost.term import StepCounts
from simcore.hardware import load_accelerator
from simcore.memory.capacity import MemoryDemand
from simcore.memory.kv_bytes import KvFormat, kv_bytes_per_token
from simcore.models import load_model

PUBLISHED: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "published" / "memory.yaml").read_text(encoding="utf-8")
)
LLAMA_RUN = "measured/vllm-per-request/RTX4090_Llama-3.1-8B"
QWEN_RUN = "measured/vllm-per-request/RTXPRO6000_Qwen3-32B"
DISTSERVE = "profiles/distserve/max_num_tokens.csv"
SHAREGPT = "traces/sharegpt/sharegpt_8k_filtered_stats_llama2_tokenizer.csv"
BLOCK = 16
FIGURE_2_CONTEXT = 2048
FIGURE_2_RATE_PER_S = 8.0
SHORT_PROMPT = 512
"""Of the ShareGPT lengths, prompts up to here have about the mean that the paper states (161 tokens; recalled). The
file's prompts are whole conversations, four times as long."""


def demand(model: str, batched_tokens: int, running: int, utilization: float = 0.9) -> MemoryDemand:
    """What a model in 16 bits asks, with blocks of 16 tokens."""
    return MemoryDemand(load_model(model), "bf16", KvFormat(), BLOCK, batched_tokens, running, utilization)


@dataclass(frozen=True, slots=True)
class Capacity:
    """KV tokens that somebody stated, and ours."""

    stated_tokens: int
    tokens: int

    @property
    def error(self) -> float:
        """Ours over the stated one, less 1."""
        return self.tokens / self.stated_tokens - 1


def logged_capacity(data: Path) -> Capacity:
    """Llama-3.1-8B on an RTX 4090: the engine logged its blocks."""
    meta = json.loads((data / LLAMA_RUN / "meta.json").read_text(encoding="utf-8"))
    cache, engine = meta["kv_cache"], meta["engine_kwargs"]
    asked = demand("llama-3.1-8b", engine["max_num_batched_tokens"], engine["max_num_seqs"])
    budget = asked.budget(load_accelerator("rtx-4090"), engine["tensor_parallel_size"])
    return Capacity(cache["num_gpu_blocks"] * cache["block_size"], budget.blocks * BLOCK)


def least_capacity(data: Path) -> Capacity:
    """Qwen3-32B on two RTX PRO 6000: no blocks are logged, but so many tokens were held at once."""
    meta = json.loads((data / QWEN_RUN / "meta.json").read_text(encoding="utf-8"))
    engine = meta["engine_kwargs"]
    rows = [json.loads(line) for line in (data / QWEN_RUN / "requests.jsonl").read_text(encoding="utf-8").splitlines()]
    names = ("input_toks", "output_toks", "scheduled_ts", "first_token_ts", "last_token_ts")
    prompt, output, start, first, last = (np.array([row[name] for row in rows], dtype=float) for name in names)
    most = 0.0
    for now in last:
        running = (start < now) & (now <= last)
        made = np.clip((now - first) / np.maximum(last - first, 1e-9), 0, 1) * output
        most = max(most, float((prompt + made)[running].sum()))
    asked = demand("qwen3-32b", engine["max_num_batched_tokens"], engine["max_num_seqs"])
    budget = asked.budget(load_accelerator("rtx-pro-6000-blackwell"), engine["tensor_parallel_size"])
    return Capacity(int(most), budget.blocks * BLOCK)


@dataclass(frozen=True, slots=True)
class Tabulated:
    """A row of DistServe's table, and ours at 90% of memory; ``room_bytes`` are those of its KV and our weights."""

    model: str
    ranks: int
    stages: int
    capacity: Capacity
    room_bytes: int


def tabulated_capacities(data: Path) -> Iterator[Tabulated]:
    """DistServe's KV tokens of OPT-13B and OPT-66B on A100 80 GB, over tensor and pipeline parallel ranks.

    OPT-175B is none of our models. The table does not say with what share of memory it was made.
    """
    a100 = load_accelerator("a100-sxm-80gb")
    with (data / DISTSERVE).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            model = row["model"].removeprefix("facebook/")
            if model == "opt-175b":
                continue
            ranks, stages, tokens = int(row["tp"]), int(row["pp"]), int(row["max_num_tokens"])
            budget = demand(model, 2048, 256).budget(a100, ranks, stages)
            room = budget.weight_bytes + tokens * budget.block_bytes // BLOCK
            yield Tabulated(model, ranks, stages, Capacity(tokens, budget.blocks * BLOCK), room)


def published_capacities() -> Iterator[tuple[dict[str, Any], Capacity, float]]:
    """The servers of the vLLM paper's table 1, and the share of memory that their KV and our weights take."""
    for row in PUBLISHED["paged_attention_table_1"]["rows"]:
        budget = demand(row["model"], 2560, 256).budget(load_accelerator(row["accelerator"]), row["tensor_parallel"])
        taken = budget.weight_bytes + row["kv_slots"] * budget.block_bytes // BLOCK
        yield row, Capacity(row["kv_slots"], budget.blocks * BLOCK), taken / budget.device_bytes


def schemes(slots: int, space: Callable[[int], AddressSpace] = Buddy) -> dict[str, KvAllocator]:
    """The allocators of figure 2, under the names of the published table."""
    return {
        "contiguous, longest": ContiguousKv(space(slots), reserve_longest(FIGURE_2_CONTEXT)),
        "contiguous, power of two": ContiguousKv(space(slots), reserve_power_of_two),
        "contiguous, exact": ContiguousKv(space(slots), reserve_exact),
        "paged": PagedKv(slots, BLOCK),
    }


def figure_2(
    data: Path, longest_prompt: int, requests: int, space: Callable[[int], AddressSpace] = Buddy
) -> dict[str, MemoryUse]:
    """Memory use of OPT-13B on an A100 40 GB under ShareGPT lengths, more of them than it can serve."""
    simulation = prepare(
        {
            "model": "opt-13b",
            "cluster": {"accelerator": "a100-sxm-40gb"},
            "scheduler": {"batching": {"name": "chunked-prefill", "max_batched_tokens": 2560}},
            "workload": {
                "requests": 1,
                "arrivals": {"name": "constant", "rate_per_s": 1},
                "prompt_tokens": {"name": "fixed", "tokens": 1},
                "output_tokens": {"name": "fixed", "tokens": 1},
            },
        }
    )
    slots = simulation.total_blocks * BLOCK
    cost = simulation.cost
    sent = sharegpt_requests(data, longest_prompt, requests)
    return {
        name: replay_memory_use(
            sent, memory, lambda tokens: cost.without_attention_ns(StepCounts(tokens, tokens, 0, tokens, tokens))
        )
        for name, memory in schemes(slots, space).items()
    }


def sharegpt_requests(data: Path, longest_prompt: int, requests: int) -> list[tuple[float, int, int]]:
    """Poisson arrivals of requests drawn from those of ShareGPT that OPT's context holds."""
    lengths = np.loadtxt(data / SHAREGPT, delimiter=",", skiprows=1, usecols=(0, 1), dtype=np.int64)
    fitting = lengths[(lengths.sum(axis=1) <= FIGURE_2_CONTEXT) & (lengths[:, 0] <= longest_prompt)]
    random = np.random.default_rng(0)
    drawn = fitting[random.integers(len(fitting), size=requests)]
    arrivals_ns = np.cumsum(random.exponential(1e9 / FIGURE_2_RATE_PER_S, requests))
    return [(float(at), int(prompt), int(output)) for at, (prompt, output) in zip(arrivals_ns, drawn, strict=True)]


def kv_bytes_table() -> Iterator[tuple[str, list[int]]]:
    """Bytes per token of some models in each number format."""
    formats = [KvFormat.of(dtype) for dtype in ("bf16", "fp8", "int8", "int4")]
    for model in ("opt-13b", "llama-3.1-8b", "llama-2-70b", "llama-3.1-405b", "deepseek-v3"):
        spec = load_model(model)
        yield model, [kv_bytes_per_token(spec, kv_format) for kv_format in formats]
