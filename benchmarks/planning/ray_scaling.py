"""Time a sweep with processes and on Ray clusters of this machine: ``python -m benchmarks.planning.ray_scaling``."""

import os
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from benchmarks.planning.rows import add, start
from experiments.runners import Runner, runner_of
from experiments.sweep.design import Cell, cells_of
from experiments.sweep.execution import TABLE, carry_out

NAMES = ("runner", "start_s", "sweep_s", "same_bytes")
DOCUMENT = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm"},
    "workload": {
        "requests": 3000,
        "arrivals": {"name": "poisson", "rate_per_s": 10.0},
        "prompt_tokens": {"name": "lognormal", "median": 800, "sigma": 0.6, "max": 4000},
        "output_tokens": {"name": "lognormal", "median": 150, "sigma": 0.6, "max": 1000},
    },
}
CELLS = {"cluster.replicas": [1, 2, 3, 4], "scheduler.ordering": ["fcfs", "sjf", "vtc"]}


def timed(runner: Callable[[], Runner], name: str, progress: Callable[[Cell], None] | None = None) -> dict[str, Any]:
    """How long a sweep takes, and its bytes."""
    cells = cells_of(DOCUMENT, Path(), CELLS)
    started = perf_counter()
    with closing(runner()) as made, TemporaryDirectory() as folder:
        ready = perf_counter()
        carry_out(cells, Path(folder) / "sweep", made, progress=progress)
        ended = perf_counter()
        table = (Path(folder) / "sweep" / TABLE).read_bytes()
    return {"runner": name, "start_s": round(ready - started, 1), "sweep_s": round(ended - ready, 1), "bytes": table}


def on_raylets(count: int, lose_one: bool) -> dict[str, Any]:
    """The same on so many raylets, one of which may be taken away after two cells."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    others = [cluster.add_node(num_cpus=1) for _ in range(count - 1)]
    done: list[Cell] = []

    def lose(cell: Cell) -> None:
        done.append(cell)
        if lose_one and len(done) == 2:
            cluster.remove_node(others.pop(), allow_graceful=False)

    try:
        name = f"Ray, {count} raylet{'s' if count > 1 else ''}" + (", one lost" if lose_one else "")
        return timed(lambda: runner_of(ray=cluster.address), name, lose)
    finally:
        cluster.shutdown()


def main() -> None:
    """Write the table."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    rows = [timed(lambda: runner_of(1), "one process"), timed(lambda: runner_of(2), "two processes")]
    rows += [on_raylets(count, False) for count in (1, 2, 3)]
    rows.append(on_raylets(3, True))
    first = rows[0]["bytes"]
    table = start("ray.csv", NAMES)
    for row in rows:
        own = row.pop("bytes")
        add(table, NAMES, {**row, "same_bytes": own == first})


if __name__ == "__main__":
    main()
