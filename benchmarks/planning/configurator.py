"""Hold plans against NVIDIA's aiconfigurator: ``python -m benchmarks.planning.configurator PATH``.

PATH is the command ``aiconfigurator`` of an environment of its own (0.12.0). Its best aggregated configuration for each
documented case serves some load on 8 GPUs. A plan is asked for the fewest GPUs that serve the same load within the same
limits: requests of fixed lengths at equal gaps, limits on the median, as aiconfigurator's model has neither chance nor
queues.
"""

import argparse
import csv
import subprocess
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.planning.rows import add, start
from experiments.planner.driving import drive
from experiments.planner.planning import CapacityPlan, make_plan
from experiments.planner.question import Question, ask
from experiments.planner.search import Solved, search
from experiments.planner.space import SetUp
from experiments.planner.trial import Trial
from experiments.runners import Runner, runner_of

_GPUS = 8
_TENSOR = (1, 2, 4, 8)
NAMES = (
    "case", "model", "prompt_tokens", "cached_tokens", "output_tokens", "ttft_ms", "tpot_ms", "rate_per_s",
    "configurator", "configurator_tokens_per_s_gpu", "plan", "plan_gpus", "same_split", "gpus_by_split",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """A command that aiconfigurator's documents give: where, the model, lengths in tokens, and limits in ms."""

    where: str
    repository: str
    weights: str
    prompt: int
    cached: int
    output: int
    ttft_ms: int
    tpot_ms: int


CASES = (
    Case("README, example", "Qwen/Qwen3-32B-FP8", "fp8-block", 4000, 500, 500, 300, 10),
    Case("README, other limits", "Qwen/Qwen3-32B-FP8", "fp8-block", 8000, 500, 200, 200, 10),
    Case("README, defaults", "Qwen/Qwen3-32B-FP8", "fp8-block", 4000, 0, 1000, 2000, 30),
    Case("CLI guide, example", "Qwen/Qwen3-32B", "bf16", 3000, 0, 512, 1000, 10),
    Case("CLI guide, defaults", "Qwen/Qwen3-32B", "bf16", 4000, 0, 1000, 2000, 30),
)


def configured(command: str, case: Case) -> dict[str, str]:
    """The best aggregated configuration that aiconfigurator finds, as its CSV has it."""
    with TemporaryDirectory() as folder:
        asked = {
            "--model-path": case.repository, "--total-gpus": 32, "--system": "h200_sxm", "--backend": "trtllm",
            "--isl": case.prompt, "--osl": case.output, "--prefix": case.cached, "--ttft": case.ttft_ms,
            "--tpot": case.tpot_ms, "--serving-mode": "agg", "--save-dir": folder,
        }  # fmt: skip
        options = [str(part) for pair in asked.items() for part in pair]
        subprocess.run([command, "cli", "default", *options], check=True, capture_output=True)
        (table,) = Path(folder).rglob("agg/best_config_topn.csv")
        with table.open(newline="") as file:
            return next(csv.DictReader(file))


def asked_for(case: Case, rate_per_s: float) -> Question:
    """The same load and limits as a question."""
    fixed = {"name": "fixed"}
    workload = {
        "requests": 1000,
        "arrivals": {"name": "constant", "rate_per_s": rate_per_s},
        "prompt_tokens": fixed | {"tokens": case.prompt - case.cached},
        "output_tokens": fixed | {"tokens": case.output},
    }
    if case.cached:
        workload["prefix"] = [{"name": "shared", "tokens": fixed | {"tokens": case.cached}}]
    document = {
        "model": "qwen3-32b",
        "engine": "trtllm",
        "precision": {"weights": case.weights},
        "workload": workload,
        "slo": {"ttft_s": {"p50": case.ttft_ms / 1e3}, "tpot_s": {"p50": case.tpot_ms / 1e3}},
    }
    vary = {"cluster.tensor_parallel": list(_TENSOR)}
    return ask(document, Path(), accelerators=["h200-sxm"], vary=vary, most_requests=1_500)


def gpus_by_split(plan: CapacityPlan, question: Question, runner: Runner) -> dict[int, int | None]:
    """The fewest GPUs of each split, not of the cheapest alone."""
    searches = {place: search((place,), plan.set_ups, plan.bounds, None) for place in range(len(plan.set_ups))}
    found = drive(
        searches,
        lambda tried: Trial(plan.set_ups[tried.place].with_replicas(tried.replicas), question.stages),
        lambda tried: plan.set_ups[tried.place].label,
        dict(plan.outcomes),
        runner,
        lambda what, simulations: None,
    )
    return {split(plan.set_ups[place]): _gpus(plan, each.best) for place, each in found.items()}


def split(set_up: SetUp) -> int:
    """Ranks that share a replica."""
    return int(set_up.document["cluster"]["tensor_parallel"])


def _gpus(plan: CapacityPlan, solved: Solved | None) -> int | None:
    return None if solved is None else solved.replicas * plan.set_ups[solved.place].devices


def held(command: str, case: Case, runner: Runner) -> dict[str, object]:
    """A case as a row of the table."""
    theirs = configured(command, case)
    rate = _GPUS * float(theirs["seq/s/gpu"])
    question = asked_for(case, round(rate, 3))
    plan = make_plan(question, runner)
    gpus = gpus_by_split(plan, question, runner)
    fewest = min((count for count in gpus.values() if count is not None), default=None)
    ours = [ranks for ranks, count in gpus.items() if count is not None and count == fewest]
    return {
        "case": case.where,
        "model": case.repository,
        "prompt_tokens": case.prompt,
        "cached_tokens": case.cached,
        "output_tokens": case.output,
        "ttft_ms": case.ttft_ms,
        "tpot_ms": case.tpot_ms,
        "rate_per_s": round(rate, 3),
        "configurator": f"tp{theirs['tp']}pp{theirs['pp']}",
        "configurator_tokens_per_s_gpu": round(float(theirs["tokens/s/gpu"]), 1),
        "plan": _worded(ours),
        "plan_gpus": fewest,
        "same_split": int(theirs["tp"]) in ours,
        "gpus_by_split": "; ".join(f"tp{ranks}: {count or 'none'}" for ranks, count in gpus.items()),
    }


def _worded(splits: Sequence[int]) -> str:
    return " or ".join(f"tp{ranks}" for ranks in splits) or "none"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", metavar="PATH")
    parser.add_argument("--jobs", type=int)
    asked = parser.parse_args()
    table = start("configurator.csv", NAMES)
    with closing(runner_of(asked.jobs)) as runner:
        for case in CASES:
            add(table, NAMES, held(asked.command, case, runner))


if __name__ == "__main__":
    main()
