"""Hold the outputs of this checkout against those of another: ``python tools/same_outputs.py OTHER_CHECKOUT``.

The bundled scenarios and random ones run in both, each checkout in a process of its own. A scenario is the same if
every column of its tables and every figure of its summary is, to the bit; what depends on the machine is left out. Keys
that were renamed since count as the same. The exit code is 1 if anything differs.
"""

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUNDLED = ("quickstart", "two-tenants", "multi-turn-chat", "cpu-tier")
RENAMED_FIGURES = {"pricing.lent": "pricing.fallback_profiles"}
_MODELS = {
    "smollm2-135m": ("h100-sxm", 1),
    "llama-3.1-8b": ("l40s", 1),
    "gpt-oss-20b": ("h200-sxm", 1),
    "gemma-3-27b": ("h100-sxm", 2),
    "qwen3-30b-a3b": ("b200", 2),
    "deepseek-v2-lite": ("a100-sxm-80gb", 1),
    "mixtral-8x7b": ("h100-sxm", 4),
}
_ORDERINGS = ("fcfs", "sjf", "priority", "vtc", "mlfq", "edf")
_BATCHINGS = ("chunked-prefill", "prefill-first", "decode-prefill-alternate", "static")


def random_scenarios(count: int, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Named scenario documents that vary models, policies, memory and load; the same for the same seed."""
    draw = random.Random(seed)
    for number in range(count):
        model = draw.choice(sorted(_MODELS))
        accelerator, tensor_parallel = _MODELS[model]
        arrivals = draw.choice(
            [
                {"name": "poisson", "rate_per_s": draw.choice([2, 10, 40])},
                {"name": "gamma", "rate_per_s": draw.choice([5, 20]), "cv": 3},
                {"name": "closed-loop", "concurrency": draw.choice([1, 8, 64])},
            ]
        )
        batching: dict[str, Any] = {"name": draw.choice(_BATCHINGS)}
        if batching["name"] == "chunked-prefill":
            batching["max_batched_tokens"] = draw.choice([256, 2048, 8192])
        scheduler = {
            "ordering": draw.choice(_ORDERINGS),
            "batching": batching,
            "preemption": {"mode": draw.choice(["recompute", "recompute", "swap"])},
        }
        memory: dict[str, Any] = {"block_size_tokens": draw.choice([1, 16, 64])}
        if draw.random() < 0.5:
            memory["num_gpu_blocks"] = draw.choice([3, 8]) * 4096 // memory["block_size_tokens"]
        yield (
            f"random-{number}",
            {
                "model": model,
                "seed": number,
                "engine": draw.choice(["vllm-v1", "sglang", "trtllm"]),
                "cluster": {
                    "accelerator": accelerator,
                    "tensor_parallel": tensor_parallel,
                    "replicas": draw.choice([1, 1, 3]),
                },
                "memory": memory,
                "scheduler": scheduler,
                "workload": {
                    "requests": draw.choice([50, 300]),
                    "arrivals": arrivals,
                    "prompt_tokens": {"name": "lognormal", "median": draw.choice([60, 600]), "sigma": 0.8, "max": 3000},
                    "output_tokens": {"name": "uniform", "low": 1, "high": draw.choice([40, 400])},
                },
                "slo": {"ttft_s": {"p99": 1.0}, "tpot_s": {"p99": 0.05}},
            },
        )


def figures_of(name: str, document: Mapping[str, Any] | Path) -> dict[str, str]:
    """Every column and every figure of one run, as texts that are equal if and only if they are, or its error."""
    from servetwin.api import simulate  # of the checkout that this process runs in

    try:
        result = simulate(document)
    except Exception as error:
        return {f"{name}: error": str(error)}
    found = {}
    for table in ("requests", "steps", "transfers"):
        for column, values in getattr(result, table).items():
            text = repr(values.tolist()).encode()
            found[f"{name}: {table}.{column}"] = hashlib.sha256(text).hexdigest()
    for path, value in _leaves(result.summary, ""):
        if not path.startswith("run.") or path == "run.simulated_s":
            found[f"{name}: {path}"] = repr(value)
    return found


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        for old, new in RENAMED_FIGURES.items():
            path = path.replace(old, new)
        yield path, value


def outputs(count: int, seed: int) -> dict[str, str]:
    """The figures of all scenarios, run by whatever ``servetwin`` this process imports."""
    found: dict[str, str] = {}
    for name in BUNDLED:
        found |= figures_of(name, ROOT / "scenarios" / f"{name}.yaml")
    for name, document in random_scenarios(count, seed):
        found |= figures_of(name, document)
    return found


def run_in(checkout: Path, count: int, seed: int) -> dict[str, str]:
    """The figures of all scenarios, by a process that imports from a checkout."""
    command = [sys.executable, str(Path(__file__).resolve()), "--print", "--count", str(count), "--seed", str(seed)]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def main() -> int:
    """Compare, or print the figures of this process's checkout; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", nargs="?", type=Path, help="another checkout")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--print", action="store_true", dest="prints")
    given = parser.parse_args()
    if given.prints:
        json.dump(outputs(given.count, given.seed), sys.stdout)
        return 0
    if given.other is None:
        parser.error("name another checkout")
    here, there = (run_in(checkout.resolve(), given.count, given.seed) for checkout in (ROOT, given.other))
    differ = sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
    for key in differ:
        print(f"{key}: {there.get(key, 'missing')} there, {here.get(key, 'missing')} here")
    errors = sum(key.endswith(": error") for key in here)
    scenarios = len({key.partition(":")[0] for key in here})
    print(f"{scenarios} scenarios, {errors} refused, {len(here)} figures, {len(differ)} differ")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
