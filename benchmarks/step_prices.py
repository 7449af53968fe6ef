"""Print what pricing a step costs in a loaded run: ``python -m benchmarks.step_prices``.

It is also part of ``python -m benchmarks``. Every call for the price of a step that is about to run is timed, less what
timing nothing takes, calibrated prices in turn with those of the roofline. A jump over many decode steps is one call.
Prices that are made once, by batch size for one, are made in a first run that is not timed; of the others the least
counts, which is the one that the machine disturbed least. Garbage is not collected meanwhile, as in ``timeit``.
"""

import gc
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from servetwin.api import prepare
from simcore.cost.step_cost import StepCost

SCENARIO = Path(__file__).with_name("scenarios") / "loaded.yaml"
MODELS: dict[str, tuple[str, ...]] = {
    "llama-3.1-8b on one H100": (),
    "gpt-oss-120b on two H100": ("model=gpt-oss-120b", "cluster.tensor_parallel=2"),
    "deepseek-v3 on eight H200": ("model=deepseek-v3", "cluster.accelerator=h200-sxm", "cluster.tensor_parallel=8"),
    "qwen3.5-397b on eight H200": (
        "model=qwen3.5-397b-a17b",
        "cluster.accelerator=h200-sxm",
        "cluster.tensor_parallel=8",
    ),
}
REPEATS = 15
_EMPTY_CALLS = 100_000


@dataclass(slots=True)
class Stopwatch:
    """Times calls of a method that returns the price of a step, or one for each of several."""

    calls: int = 0
    steps: int = 0
    ns: int = 0

    def timing(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method, with its calls timed."""

        def call(*arguments: object) -> Any:
            started_ns = perf_counter_ns()
            found = method(*arguments)
            self.ns += perf_counter_ns() - started_ns
            self.calls += 1
            self.steps += 1 if isinstance(found, int) else len(found)
            return found

        return call


@dataclass(frozen=True, slots=True)
class Spent:
    """Microseconds of a run: per step with chunks, per jump of decode steps, and per step of either kind."""

    mixed_us: float
    jump_us: float
    step_us: float
    steps_per_jump: float


def report() -> list[str]:
    """Measure, and return lines of Markdown."""
    return [
        "Microseconds of pricing, in runs with full batches and prompts of all lengths, by calibrated kernels; in",
        "brackets how many times what pricing by roofline takes:",
        "",
        "| model | a step with chunks | a jump of decode steps | steps in a jump | any step |",
        "|---|---:|---:|---:|---:|",
        *(_row(name, changes) for name, changes in MODELS.items()),
    ]


def _row(name: str, changes: tuple[str, ...]) -> str:
    runs = {profile: _timed_run((*changes, f"pricing.profile={profile}")) for profile in ("auto", "roofline")}
    spent: dict[str, list[Spent]] = {profile: [] for profile in runs}
    for _ in range(REPEATS):
        for profile, run in runs.items():
            spent[profile].append(run())
    ours, roofline = (min(of, key=attrgetter("step_us")) for of in spent.values())
    cells = [
        f"{ours.mixed_us:.2f} ({ours.mixed_us / roofline.mixed_us:.2f})",
        f"{ours.jump_us:.2f} ({ours.jump_us / roofline.jump_us:.2f})",
        f"{ours.steps_per_jump:.1f}",
        f"{ours.step_us:.2f} ({ours.step_us / roofline.step_us:.2f})",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def _timed_run(changes: Iterable[str]) -> Callable[[], Spent]:
    """Prepares a run; each call runs it and tells what its prices took."""
    simulation = prepare(SCENARIO, tuple(changes))
    simulation.run()
    step_ns, decode_steps_ns = simulation.cost.step_ns, simulation.cost.decode_steps_ns

    def run() -> Spent:
        mixed, jumps = Stopwatch(), Stopwatch()
        _replace(simulation.cost, mixed.timing(step_ns), jumps.timing(decode_steps_ns))
        gc.disable()
        simulation.run()
        gc.enable()
        nothing_ns = _empty_call_ns()
        mixed_ns, jump_ns = (watch.ns - nothing_ns * watch.calls for watch in (mixed, jumps))
        return Spent(
            mixed_ns / mixed.calls / 1e3,
            jump_ns / jumps.calls / 1e3,
            (mixed_ns + jump_ns) / (mixed.steps + jumps.steps) / 1e3,
            jumps.steps / jumps.calls,
        )

    return run


def _replace(cost: StepCost, step_ns: Callable[..., Any], decode_steps_ns: Callable[..., Any]) -> None:
    cost.step_ns, cost.decode_steps_ns = step_ns, decode_steps_ns  # type: ignore[method-assign]


def _empty_call_ns() -> float:
    watch = Stopwatch()
    nothing = watch.timing(lambda plan, pool, rows: 0)
    for _ in range(_EMPTY_CALLS):
        nothing(None, None, 0)
    return watch.ns / _EMPTY_CALLS


if __name__ == "__main__":
    print("\n".join(report()))
