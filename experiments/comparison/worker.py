"""A process that carries out runs for another one.

It is started as a fresh interpreter, not by ``multiprocessing``, which would import the caller's main module again: so
a plain script, a notebook or an interactive session can compare. Requests and answers are lines of JSON over its
standard input and output.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from traceback import format_exc
from typing import Any

from experiments.comparison.plan import PlannedRun
from experiments.comparison.run_store import RunStore
from simcore.build.simulation import Simulation
from simcore.core.errors import ServetwinError

_START = "import sys; sys.path[:] = {!r}; from experiments.comparison.worker import serve; serve()"


def perform(run: PlannedRun, folder: Path) -> None:
    """Carry out a run and keep it in ``folder``; raises ``ServetwinError``, naming the run, if it fails."""
    try:
        result = Simulation.prepare(run.document, Path()).run()
        RunStore(folder).keep(run, result)
    except ServetwinError as error:
        raise ServetwinError(f"{run.variant}, seed {run.seed}: {error}") from error


class Worker:
    """The process, seen from the one that started it."""

    def __init__(self) -> None:
        # A process group of its own: Ctrl-C reaches the starter alone, which then decides.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START.format(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            process_group=0,
        )

    def perform(self, run: PlannedRun, folder: Path) -> None:
        """As ``perform``, in the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"run": asdict(run), "folder": str(folder.absolute())}
        try:
            print(json.dumps(asked), file=self._process.stdin, flush=True)
            answer = self._process.stdout.readline()
        except (OSError, ValueError):  # its end of the pipe is closed, or ours, since it was stopped
            answer = ""
        if not answer:
            code = self._process.wait()
            why = f"by signal {-code}, which may be for want of memory" if code < 0 else f"with exit code {code}"
            raise ServetwinError(f"{run.variant}, seed {run.seed}: its process ended {why}.")
        outcome = json.loads(answer)
        if "refused" in outcome:
            raise ServetwinError(outcome["refused"])
        if "crashed" in outcome:
            raise RuntimeError(f"{run.variant}, seed {run.seed}:\n{outcome['crashed']}")

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


def serve() -> None:
    """Carry out what comes in, until whoever asks is gone."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a policy prints must not mix with the answers
    asked: SimpleQueue[dict[str, Any]] = SimpleQueue()
    Thread(target=_listen, args=(asked,), daemon=True).start()
    while True:
        print(json.dumps(_answer(**asked.get())), file=answers, flush=True)


def _listen(asked: SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        asked.put(json.loads(line))
    os._exit(0)  # also in the middle of a run: nobody waits for it any more


def _answer(run: dict[str, Any], folder: str) -> dict[str, str]:
    try:
        perform(PlannedRun(**run), Path(folder))
    except ServetwinError as error:
        return {"refused": str(error)}
    except Exception:
        return {"crashed": format_exc()}
    return {}
