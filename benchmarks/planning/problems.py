"""Random problems of capacity planning, small enough to try every set-up with every number of replicas."""

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from experiments.planner.question import Question, ask

_MODELS = ("qwen2.5-7b", "llama-3.1-8b", "qwen2.5-14b", "mistral-7b")
_ACCELERATORS = ("l4", "l40s", "rtx-4090", "rtx-5090", "a100-sxm-80gb", "h100-sxm", "h200-sxm", "mi300x")


@dataclass(frozen=True, slots=True)
class Problem:
    """A question, and the most replicas that an exhaustive search tries."""

    number: int
    question: Question
    most_replicas: int


def problem(number: int, most_replicas: int = 8, most_requests: int = 1_000) -> Problem:
    """The problem of a number: a model, a load, limits, and two accelerators, drawn at random."""
    random = Random(number)
    document: dict[str, Any] = {
        "model": random.choice(_MODELS),
        "seed": number,
        "workload": {
            "requests": 1000,
            "arrivals": {"name": "poisson", "rate_per_s": round(random.uniform(5, 40), 1)},
            "prompt_tokens": {"name": "lognormal", "median": random.choice((200, 500, 900)), "sigma": 0.5, "max": 3000},
            "output_tokens": {"name": "lognormal", "median": random.choice((10, 20, 40)), "sigma": 0.4, "max": 300},
        },
        "slo": {
            "ttft_s": {"p95": random.choice((0.3, 0.6, 1.2))},
            "tpot_s": {"p95": random.choice((0.025, 0.04, 0.06))},
        },
    }
    question = ask(
        document,
        Path(),
        accelerators=random.sample(_ACCELERATORS, 2),
        vary={"cluster.tensor_parallel": [1, 2], "scheduler.batching.max_batched_tokens": [8192, 1024]},
        most_requests=most_requests,
    )
    return Problem(number, question, most_replicas)
