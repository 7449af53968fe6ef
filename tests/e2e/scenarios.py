"""Scenarios for whole-run tests: a small one to vary, random ones, and how to compare two results."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import example
from hypothesis import strategies as st

from policies import registry
from policies.batching import Batching, StepLimits
from policies.views import ReplicaView
from simcore.build.simulation import Simulation
from simcore.core.result import Result
from simcore.models import load_preset

SOME_WINDOWS, ALL_WINDOWS, SOME_LINEAR = "some-windows", "all-windows", "some-linear"
"""Folders with a Gemma-3 and a Mistral whose windows are so small that most requests cross them, and with a small
Qwen3-Next."""
LONGEST_TOKENS = {
    "smollm2-135m": 160,
    SOME_WINDOWS: 120,
    ALL_WINDOWS: 120,
    SOME_LINEAR: 160,
    "deepseek-v2-lite": 160,
    "gpt-oss-20b": 260,  # beyond its window of 128
    "gemma-3-27b": 1300,  # beyond its window of 1024
}
STEP_S = {
    "smollm2-135m": 1.2e-3,
    SOME_WINDOWS: 0.02,
    ALL_WINDOWS: 0.006,
    SOME_LINEAR: 2e-3,
    "deepseek-v2-lite": 5e-3,
    "gpt-oss-20b": 3e-3,
    "gemma-3-27b": 0.03,
}
"""About how long a step takes, so that arrivals can be drawn on the same scale."""
WITH_KV_ALONE = tuple(sorted(set(LONGEST_TOKENS) - {SOME_LINEAR}))
"""Models whose requests have nothing but blocks, which can be kept, shared and moved."""


@dataclass(frozen=True)
class Squeeze(Batching):
    """A budget that shrinks when more than two requests decode, so that some stall; a constant one lets none stall."""

    max_batched_tokens: int
    max_running_requests: int
    long_prefill_threshold_tokens: int | None = None

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        budget = self.max_batched_tokens if replica.decoding_requests <= 2 else min(self.max_batched_tokens, 2)
        return StepLimits(budget, self.max_running_requests, self.long_prefill_threshold_tokens or budget)


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid over ``base``, mappings within each other; a whole workload is replaced, not merged."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        nested = isinstance(value, Mapping) and isinstance(below, Mapping) and key != "workload"
        result[key] = merged(below, value) if nested else value
    return result


def synthetic(arrivals: Mapping[str, Any], prompt: Any, output: Any, **bound: Any) -> dict[str, Any]:
    """A workload section; a length is a number of tokens or a (low, high) pair."""
    return {"arrivals": dict(arrivals), "prompt_tokens": length(prompt), "output_tokens": length(output), **bound}


def length(tokens: int | tuple[int, int]) -> dict[str, Any]:
    """A fixed length, or one uniform between two."""
    if isinstance(tokens, tuple):
        return {"name": "uniform", "low": tokens[0], "high": tokens[1]}
    return {"name": "fixed", "tokens": tokens}


def write_models(folder: Path) -> None:
    """Put the models that random scenarios use beside the presets into ``folder``."""
    some = json.loads(json.dumps(load_preset("gemma-3-27b").config))
    some["text_config"]["sliding_window"] = 24
    for name, config in (
        (SOME_WINDOWS, some),
        (ALL_WINDOWS, load_preset("mistral-7b").config | {"sliding_window": 40}),
        (SOME_LINEAR, load_preset("qwen3-next-80b-a3b").config | {"num_hidden_layers": 12, "num_experts": 32}),
    ):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "config.json").write_text(json.dumps(config))


def prepare(document: Mapping[str, Any], folder: Path) -> Simulation:
    """Check a scenario; a workload may state its rows (arrival_s, prompt, output) in place of a trace file."""
    document = dict(document)
    rows = document["workload"].get("rows")
    if rows is not None:
        lines = ["arrival_s,prompt_tokens,output_tokens", *(",".join(map(str, row)) for row in rows)]
        (folder / "trace.csv").write_text("\n".join(lines) + "\n")
        others = {key: value for key, value in document["workload"].items() if key != "rows"}
        document["workload"] = {"trace": "trace.csv", "format": "csv"} | others
    with squeeze_registered():
        return Simulation.prepare(document, folder)


def run(document: Mapping[str, Any], folder: Path, **options: Any) -> Result:
    """Simulate a scenario as ``prepare`` takes it."""
    simulation = prepare(document, folder)
    with squeeze_registered():
        return simulation.run(**options)


def squeeze_registered() -> Any:
    """A context in which ``Squeeze`` is a batching policy that scenarios can name."""
    return patch.object(
        registry, "_third_party", lambda kind: {"squeeze": f"{__name__}:Squeeze"} if kind == "batching" else {}
    )


def differences(one: Result, other: Result) -> list[str]:
    """Where two results differ by a single bit; wall times are no part of that."""
    found = list(_different(strip_run(one.summary), strip_run(other.summary), "summary"))
    for name in ("requests", "steps"):
        first, second = getattr(one, name), getattr(other, name)
        found += [
            f"{name}.{column}: {first[column]} and {second[column]}"
            for column in first
            if not np.array_equal(first[column], second[column], equal_nan=first[column].dtype.kind == "f")
        ]
    return found


def strip_run(summary: Mapping[str, Any]) -> dict[str, Any]:
    """A summary without what depends on the machine that made it."""
    return {key: value for key, value in summary.items() if key != "run"} | {
        "simulated_s": summary["run"]["simulated_s"]
    }


def _different(one: Any, other: Any, place: str) -> Iterator[str]:
    if isinstance(one, Mapping):
        if one.keys() != other.keys():
            yield f"{place}: keys {sorted(one)} and {sorted(other)}"
        for key in one.keys() & other.keys():
            yield from _different(one[key], other[key], f"{place}.{key}")
    elif one != other:
        yield f"{place}: {one} and {other}"


@st.composite
def random_scenarios(draw: st.DrawFn, models: tuple[str, ...] = WITH_KV_ALONE) -> dict[str, Any]:
    """Small scenarios in which everything that can get in the way of a request does so often.

    Hypothesis draws the first of several values most often, so the busiest ones come first.
    """
    model = draw(st.sampled_from(models))
    longest, step_s = LONGEST_TOKENS[model], STEP_S[model]
    long_prompts = draw(st.booleans())
    prompt_low = draw(st.integers(1, longest // 2))
    prompt = (prompt_low, draw(st.integers(prompt_low, longest if long_prompts else prompt_low + 8)))
    output_low = draw(st.sampled_from([1, 2, 20]))
    output = (output_low, draw(st.integers(output_low, 60)))
    block_size = draw(st.integers(1, 64))
    blocks_of_longest = -(-(prompt[1] + output[1] - 1) // block_size)
    # From too few blocks for the longest request, over just enough for it, to no shortage at all.
    blocks = max(1, round(blocks_of_longest * draw(st.sampled_from([4, 0.7, 2, 8, 1.3, 1, 20]))))
    batching = {
        "name": draw(st.sampled_from(["chunked-prefill", "squeeze"])),
        "max_batched_tokens": draw(st.sampled_from([17, 64, 5, 300, 3, 8192, 2, 1])),
        "max_running_requests": draw(st.sampled_from([8, 256, 256, 3, 1])),
        "long_prefill_threshold_tokens": draw(st.sampled_from([None, None, 1, 7, 50])),
    }
    scenario = {
        "model": model,
        "seed": draw(st.integers(0, 1000)),
        "cluster": {
            "accelerator": "h100-sxm",
            "replicas": draw(st.sampled_from([1, 1, 2, 3])),
            "tensor_parallel": draw(st.sampled_from([1, 2, 8])) if model in ("gpt-oss-20b", "gemma-3-27b") else 1,
        },
        "memory": {
            "num_gpu_blocks": blocks + 1,
            "block_size_tokens": block_size,
            "prefix_caching": draw(st.booleans()),
        },
        "scheduler": {"batching": batching, "reserve_whole_prompt": draw(st.booleans())},
        "workload": draw(_workloads(prompt, output, step_s)),
        "slo": {"ttft_s": {"p90": 20 * step_s}, "tpot_s": {"p50": 2 * step_s}},
    }
    span_s = draw(st.sampled_from([10, 40, 200])) * step_s
    measurement = draw(st.sampled_from([{}, {}, {"warmup_s": 0.3}, {"end_s": 1.0}, {"warmup_s": 0.3, "end_s": 1.0}]))
    return scenario | {"measurement": {key: share * span_s for key, share in measurement.items()}}


@st.composite
def _workloads(draw: st.DrawFn, prompt: tuple[int, int], output: tuple[int, int], step_s: float) -> dict[str, Any]:
    requests = 31 - draw(st.integers(1, 30))
    kind = draw(st.sampled_from(["poisson", "gamma", "constant", "closed-loop", "trace"]))
    if kind == "trace":
        times = st.integers(0, 12).map(lambda step: round(step * step_s, 9))
        row = st.tuples(times, st.integers(*prompt), st.integers(*output))
        return {"rows": sorted(draw(st.lists(row, min_size=requests // 2 or 1, max_size=requests)))}
    rate_per_s = draw(st.sampled_from([1.0, 10.0, 0.1, 1e4, 0.03])) / step_s
    arrivals: dict[str, Any] = {"name": kind, "rate_per_s": rate_per_s}
    if kind == "gamma":
        arrivals["cv"] = 4.0
    if kind == "closed-loop":
        think_time_s = draw(st.sampled_from([0.0, 0.0, 5.0])) * step_s
        arrivals = {"name": kind, "concurrency": draw(st.integers(1, 12)), "think_time_s": think_time_s}
    return synthetic(arrivals, prompt, output, requests=requests)


def _hard(rows: list[tuple[float, int, int]], **changes: Any) -> dict[str, Any]:
    base = {"model": "smollm2-135m", "cluster": {"accelerator": "h100-sxm", "replicas": 1}, "measurement": {}}
    return merged(base, {"workload": {"rows": rows}, **changes})


HARD = (
    # Preempted again while its tokens are still being computed again.
    _hard(
        [(0.0, 50, 22), (0.0, 53, 37), (0.0, 54, 15)],
        memory={"num_gpu_blocks": 145, "block_size_tokens": 1},
        scheduler={"reserve_whole_prompt": False, "batching": {"max_batched_tokens": 17}},
    ),
    # A prompt takes the whole budget while all that decode stall, and gets its first token before their next ones.
    _hard(
        [(0.0, 51, 10), (0.0, 1, 10), (0.0, 1, 10), (0.0, 1, 10)],
        memory={"num_gpu_blocks": 100, "block_size_tokens": 16},
        scheduler={
            "batching": {
                "name": "squeeze",
                "max_batched_tokens": 300,
                "max_running_requests": 8,
                "long_prefill_threshold_tokens": 7,
            }
        },
    ),
    # Back in the decode pool at the very place it had before it was preempted.
    _hard([(0.0, 36, 8), (0.0, 10, 27)], memory={"num_gpu_blocks": 5, "block_size_tokens": 16}),
)
"""Scenarios that random ones seldom come upon."""


def hard_examples(test: Callable[..., None]) -> Callable[..., None]:
    """Have a test of random scenarios look at the hard ones first."""
    for scenario in HARD:
        test = example(scenario=scenario)(test)
    return test
