"""Measure a machine within a budget: a coarse design first, then where it is worth most."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

import numpy as np

from calibrate.measuring.device import Candidate, Device
from calibrate.measuring.repetition import Measured, Repetition, measure
from calibrate.measuring.sample_log import SampleLog
from calibrate.measuring.sampler import Sampler
from calibrate.measuring.surrogate import Peaks

_LEAST = 14
"""Measurements that are taken whatever the time: with fewer there is nothing to fit."""
Told = Callable[[Candidate, Measured, float], None]
"""Hears of each measurement, and of the expected error before it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a campaign ended: seconds, measurements taken in it, the expected error, and why it ended."""

    seconds: float
    taken: int
    expected_error: float
    reason: str


def measure_machine(
    device: Device,
    log: SampleLog,
    seconds: float,
    target_error: float,
    resume: bool = False,
    repetition: Repetition | None = None,
    told: Told | None = None,
    peaks: Peaks | None = None,
) -> Ended:
    """Measure until ``seconds`` have passed, the expected error is below the target, or nothing is left.

    A few measurements are taken in any case, without which nothing can be fitted. ``peaks`` are those of the device,
    where they are known. What ``log`` holds already counts as known. Its candidates are measured again, unless one is
    to ``resume``.
    """
    began, taken = monotonic(), 0
    candidates = device.candidates()
    sampler = Sampler(candidates, peaks=peaks)
    sampler.tell(log.measured)
    done = {measured.name for measured in log.measured} if resume else set()
    sampler.take_as_measured(done)
    coarse = [candidate for candidate in candidates if candidate.coarse and candidate.name not in done]
    coarse = [coarse[place] for place in np.random.default_rng(0).permutation(len(coarse)).tolist()]
    sampler.take_as_measured(candidate.name for candidate in coarse)
    expected, reason = float("nan"), "time is up"
    while monotonic() - began < seconds or len(done) + taken < _LEAST:
        if coarse:
            chosen = coarse.pop(0)
        else:
            outlook = sampler.outlook()
            expected = outlook.expected_error
            best = sampler.choose(outlook)
            if expected <= target_error:
                reason = "the target error is met"
                break
            if not best:
                reason = "all is measured"
                break
            chosen = best[0]
        measured = measure(device, chosen, repetition)
        log.add(measured)
        sampler.tell([measured])
        taken += 1
        if told is not None:
            told(chosen, measured, expected)
    return Ended(monotonic() - began, taken, sampler.outlook().expected_error, reason)
