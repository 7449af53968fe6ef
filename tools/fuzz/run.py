"""Try inputs one after the other, and say which were answered by anything but a result or one sentence."""

import signal
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic
from types import FrameType

from simcore.core.errors import ServetwinError
from tools.fuzz.mutation import mutated
from tools.fuzz.targets import TARGETS

_LONGEST_CPU_S, _LONGEST_S = 20, 200
_LONGEST_SENTENCE = 5000


class _TooLongError(BaseException):
    """An input took longer than any of its size may."""


@dataclass(slots=True)
class Outcome:
    """How many inputs of each kind were read, and refused in one sentence; and what else came of which seed."""

    read: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    failures: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """All inputs."""
        return sum(self.read.values()) + sum(self.refused.values()) + len(self.failures)


def fuzz(kinds: Sequence[str], seeds: range, for_s: float | None = None) -> Outcome:
    """Try an input of one of the kinds in turn for every seed, for so many seconds at most.

    A valid one of each is read first, so that what reading imports takes no input's time.
    """
    for kind in kinds:
        with TemporaryDirectory(prefix="fuzz-") as folder:
            TARGETS[kind].read(TARGETS[kind].seeds[0], Path(folder))
    outcome, began = Outcome(), monotonic()
    for seed in seeds:
        if for_s is not None and monotonic() - began > for_s:
            break
        kind = kinds[seed % len(kinds)]
        problem = _tried(kind, input_of(kind, seed), outcome)
        if problem is not None:
            outcome.failures.append((kind, seed, problem))
    return outcome


def input_of(kind: str, seed: int) -> bytes:
    """The input that a seed makes of a kind's valid ones."""
    return mutated(Random(f"{kind} {seed}"), TARGETS[kind].seeds)


def _tried(kind: str, content: bytes, outcome: Outcome) -> str | None:
    with TemporaryDirectory(prefix="fuzz-") as folder, _limited(), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            TARGETS[kind].read(content, Path(folder))
        except ServetwinError as error:
            said = str(error)
            if not said.isprintable() or not said or len(said) > _LONGEST_SENTENCE:
                return f"no one sentence: {said[:200]!r}"
            outcome.refused[kind] = outcome.refused.get(kind, 0) + 1
            return None
        except (Exception, _TooLongError):
            return traceback.format_exc(limit=-4)
    outcome.read[kind] = outcome.read.get(kind, 0) + 1
    return None


@contextmanager
def _limited() -> Iterator[None]:
    def end(number: int, frame: FrameType | None) -> None:
        raise _TooLongError

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, _LONGEST_CPU_S), signal.SIGALRM: (signal.ITIMER_REAL, _LONGEST_S)}
    before = {number: signal.signal(number, end) for number in timers}
    for timer, seconds in timers.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
