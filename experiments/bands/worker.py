"""Replays of a simulation in processes of their own.

They are fresh interpreters, as those of a comparison are, so that a plain script or a notebook can ask for bands.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from experiments.bands.bands import Figures, figures_of
from experiments.bands.replay import replay
from simcore.build.simulation import Simulation
from simcore.core.errors import ServetwinError
from simcore.cost.uncertainty import Draw

_START = "import sys; sys.path[:] = {!r}; from experiments.bands.worker import serve; serve()"


def replay_in_processes(simulation: Simulation, drawn: Sequence[Draw], processes: int) -> list[Figures]:
    """The figures of the replay of each draw, in order; the same as without processes.

    Raises ``ServetwinError`` if a replay cannot be carried out.
    """
    parts = [drawn[first::processes] for first in range(processes)]
    with ThreadPoolExecutor(processes) as threads:
        done = list(threads.map(partial(_carry_out, simulation.scenario.document()), parts))
    return [done[index % processes][index // processes] for index in range(len(drawn))]


def _carry_out(document: dict[str, Any], drawn: Sequence[Draw]) -> list[Figures]:
    process = subprocess.run(
        [sys.executable, "-c", _START.format(sys.path)],
        input=json.dumps({"document": document, "draws": [dict(draw) for draw in drawn]}),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if process.returncode:
        raise RuntimeError(f"a process of replays ended with exit code {process.returncode}:\n{process.stderr}")
    answer = json.loads(process.stdout)
    if "refused" in answer:
        raise ServetwinError(answer["refused"])
    figures: list[Figures] = answer["figures"]
    return figures


def serve() -> None:
    """Carry out what stands on standard input, and answer on standard output."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a policy prints must not mix with the answer
    json.dump(_answer(**json.load(sys.stdin)), answers)
    answers.close()


def _answer(document: dict[str, Any], draws: Sequence[Draw]) -> dict[str, Any]:
    try:
        simulation = Simulation.prepare(document, Path())
        return {"figures": [figures_of(replay(simulation, draw).run()) for draw in draws]}
    except ServetwinError as error:
        return {"refused": str(error)}
