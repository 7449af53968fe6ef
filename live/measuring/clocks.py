"""Clocks that measurements on a CPU are timed by: the host's, the own thread's, and one of a steady machine."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import torch

from simcore.core.errors import FileError
from simcore.core.files import opening, writing
from simcore.core.outputs import begins_with, replace_text

NowNs = Callable[[], int]


@dataclass(slots=True)
class MeasuringClock:
    """The host's clock. ``waits_count`` says whether time passes on it while the own thread does not run."""

    raw_ns: NowNs = time.perf_counter_ns
    waits_count: bool = True

    def now_ns(self) -> int:
        """Nanoseconds from any origin."""
        return self.raw_ns()

    def settle(self) -> None:
        """Called between two measurements; takes no time on this clock."""


def thread_clock() -> MeasuringClock:
    """Counts only what the own thread computes, for machines that do other work."""
    return MeasuringClock(time.thread_time_ns, waits_count=False)


_REFERENCE, _BEGINNING = "reference.json", b'{"reference_s": '
_LEAST_S, _MOST_S = 1e-5, 60.0
_EVERY_NS = 250_000_000
_LAYERS, _HIDDEN, _BLOCK, _CONTEXT, _ROWS = 6, 512, 2048, 64, 4
_REPEATS = 3


class Reference:
    """Decoder layers of made-up weights: products that read 50 MB, attention and elementwise kernels, all small."""

    def __init__(self) -> None:
        drawn = torch.Generator().manual_seed(0)

        def made_up(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=drawn) * shape[-1] ** -0.5

        self._rows = made_up(_ROWS, _HIDDEN)
        shapes = (_BLOCK, _HIDDEN), (_HIDDEN, _BLOCK), (_CONTEXT, _HIDDEN)
        self._layers = [tuple(made_up(*shape) for shape in shapes) for _ in range(_LAYERS)]

    def seconds(self, now_ns: NowNs) -> float:
        """The median time of a few passes, after one that is not counted."""
        self._run()
        times = []
        for _ in range(_REPEATS):
            began_ns = now_ns()
            self._run()
            times.append((now_ns() - began_ns) * 1e-9)
        return median(times)

    @torch.inference_mode()
    def _run(self) -> None:
        rows = self._rows
        for up, down, keys in self._layers:
            normed = torch.nn.functional.rms_norm(rows, (_HIDDEN,))
            attended = torch.softmax(normed @ keys.T, -1) @ keys
            rows = rows + attended + torch.nn.functional.silu(normed @ up.T) @ down.T


@dataclass(slots=True)
class SteadyClock(MeasuringClock):
    """What the own thread computes, on a machine whose speed does not change.

    A fixed piece of work, the reference, is timed again and again. Time passes the more slowly, the longer the
    reference takes beside ``reference_s``, its time when measuring began. Processors change their clock rate, and
    virtual machines share cores and caches: both slow the reference down like the work that is measured.
    ``slowness`` holds all its times so far, relative to ``reference_s``.
    """

    raw_ns: NowNs = time.thread_time_ns
    waits_count: bool = False
    reference_s: float | None = None
    slowness: list[float] = field(default_factory=list)
    _work: Reference = field(default_factory=Reference)
    _rate: float = 1.0
    _since_raw_ns: int = 0
    _passed_ns: int = 0
    _measured_ns: int | None = None

    @classmethod
    def of_folder(cls, folder: Path) -> "SteadyClock":
        """The clock of the speed that is kept in ``folder``. Raises ``FileError`` where none is, or nonsense."""
        path = folder / _REFERENCE
        with opening(path):
            text = path.read_text(encoding="utf-8")
        try:
            reference_s = float(json.loads(text)["reference_s"])
        except (ValueError, TypeError, KeyError):
            reference_s = 0.0
        if not _LEAST_S < reference_s < _MOST_S:
            raise FileError(path, f"holds no reference_s between {_LEAST_S} and {_MOST_S} s")
        return cls(reference_s=reference_s)

    @classmethod
    def kept_in(cls, folder: Path) -> "SteadyClock":
        """The same; where no speed is kept yet, that of now, which then is. Raises ``FileError`` as well."""
        path = folder / _REFERENCE
        if path.exists():
            return cls.of_folder(folder)
        clock = cls()
        clock.settle()
        with writing(path):
            folder.mkdir(parents=True, exist_ok=True)
        replace_text(path, json.dumps({"reference_s": clock.reference_s}) + "\n", begins_with(_BEGINNING))
        return clock

    def now_ns(self) -> int:
        """See ``MeasuringClock``."""
        return self._passed_ns + round((self.raw_ns() - self._since_raw_ns) * self._rate)

    def settle(self) -> None:
        """Time the reference, if the last time was long ago."""
        if self._measured_ns is not None and self.raw_ns() - self._measured_ns < _EVERY_NS:
            return
        self._passed_ns = self.now_ns() if self._measured_ns is not None else 0
        seconds = self._work.seconds(self.raw_ns)
        if self.reference_s is None:
            self.reference_s = seconds
        self.slowness.append(seconds / self.reference_s)
        self._rate = self.reference_s / seconds
        self._measured_ns = self._since_raw_ns = self.raw_ns()
