"""How much of a live step is spent outside the model: scheduling, block tables, inputs, sampling, handing out tokens.

Run it alone on a quiet machine: ``python -m benchmarks.live_host_work``. A model of 25 million random parameters
decodes with 1, 32 and 256 requests. Printed are medians: of a step, of the share of it outside the model's pass, of
plan and commit, which are all that scheduler and block manager do, and of the parts of a step: what lies between two
(plan and commit among it), inputs with block tables, sampling, and handing tokens out.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np
import torch

from live.engine.replica import LiveReplica
from live.engine.setup import LiveSettings, LiveSetup
from live.engine.step_times import PARTS
from live.engine.wall_clock import WallClock
from live.engine.weights_choice import RANDOM, choose_weights
from simcore.recording.recorder import Recorder
from simcore.workload.batch import RequestBatch
from simcore.workload.in_memory import InMemoryOpenLoop

SMALL_MODEL = Path(__file__).resolve().parents[1] / "scenarios" / "live" / "random-25m.json"
BATCHES = (1, 32, 256)
PROMPT_TOKENS = 32
OUTSIDE = tuple(part for part in PARTS if part != "forward")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=40, help="decode steps of each batch")
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES)
    arguments = parser.parse_args()
    names = ("plan", "commit", *(f"{part}" for part in OUTSIDE))
    print(f"{'batch':>6} {'step ms':>9} {'outside model':>14}", *(f"{name + ' us':>11}" for name in names))
    for batch in arguments.batches:
        found = measured(batch, arguments.steps, arguments.device)
        times = (f"{found[name]:11.0f}" for name in names)
        print(f"{batch:6d} {found['step_ms']:9.3f} {found['outside_share']:14.1%}", *times)


def measured(batch: int, steps: int, device: str = "cpu") -> dict[str, float]:
    """Medians over decode steps of so many requests."""
    settings = LiveSettings(device=device, threads=1 if device == "cpu" else None)
    model = choose_weights(str(SMALL_MODEL), RANDOM, settings)
    document = {
        "model": "small",
        "engine": "servetwin-live",
        "memory": {"num_gpu_blocks": batch * (-(-(PROMPT_TOKENS + steps) // 16) + 1), "prefix_caching": True},
        "scheduler": {"batching": {"max_batched_tokens": 2048, "max_running_requests": batch}},
        "workload": {
            "requests": 1,
            "arrivals": {"name": "constant", "rate_per_s": 1.0},
            "prompt_tokens": {"name": "fixed", "tokens": 1},
            "output_tokens": {"name": "fixed", "tokens": 1},
        },
    }
    setup = LiveSetup.prepare(model, document, Path(), settings)
    requests = RequestBatch(
        np.zeros(batch, np.int64), np.full(batch, PROMPT_TOKENS, np.int64), np.full(batch, steps, np.int64)
    )
    simulation = replace(setup.simulation, workload=InMemoryOpenLoop(requests))
    clock, recorder = WallClock(), Recorder()
    cluster = setup.of(simulation).replica(clock, recorder)
    (replica,) = cluster.replicas
    assert isinstance(replica, LiveReplica)
    plan_ns, commit_ns = [], []
    timed = _TimedScheduler(replica.scheduler, plan_ns, commit_ns)
    replica.scheduler = timed  # type: ignore[assignment]
    simulation.run_on(clock, recorder, cluster)
    columns = replica.live.times.columns()
    decodes = (columns["chunks"] == 0) & (columns["decoding"] == batch)
    decodes &= np.roll(decodes, -1)  # with the last of them requests end
    outside = (columns["step_ns"] - columns["forward_ns"])[decodes]
    parts_us = {part: float(np.median(columns[f"{part}_ns"][decodes])) / 1e3 for part in OUTSIDE}
    return {
        "step_ms": float(np.median(columns["step_ns"][decodes])) / 1e6,
        "outside_share": float(np.median(outside / columns["step_ns"][decodes])),
        "plan": float(np.median(np.array(plan_ns[: len(decodes)])[decodes])) / 1e3,
        "commit": float(np.median(np.array(commit_ns)[decodes])) / 1e3,
        **parts_us,
    }


class _TimedScheduler:
    """A scheduler that keeps how long it planned and committed."""

    def __init__(self, scheduler: Any, plan_ns: list[int], commit_ns: list[int]) -> None:
        self._scheduler = scheduler
        self.plan = _timed(scheduler.plan, plan_ns)
        self.commit = _timed(scheduler.commit, commit_ns)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)


def _timed(action: Callable[..., Any], times_ns: list[int]) -> Callable[..., Any]:
    @wraps(action)
    def timed(*arguments: Any) -> Any:
        began = perf_counter_ns()
        result = action(*arguments)
        times_ns.append(perf_counter_ns() - began)
        return result

    return timed


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
