"""``servetwin calibrate``: from this machine to a kernel profile."""

import os
from pathlib import Path
from typing import Any

from servetwin.clock_names import MeasuringClockName, measuring_clock
from servetwin.console import say
from servetwin.live_options import settings_of
from simcore.core.errors import ServetwinError, UnknownNameError

BUSY = 0.2
"""The share of a device that others may use before it counts as busy."""
_CONTEXT_TOKENS = 2048
"""The longest context that is measured for a model alone."""


def calibrate(
    device: str | None,
    models: str | None,
    minutes: float,
    kernels: str,
    out: Path | None,
    resume: bool,
    force: bool,
    target_error: float,
    dtype: str | None,
    clock: MeasuringClockName | None,
) -> None:
    """Measure this machine, fit a profile, and say how well each part of it is known."""
    from calibrate.fit.held_out import FITS

    chosen = frozenset(FITS if kernels == "all" else kernels.split(","))
    for name in sorted(chosen - FITS.keys()):
        raise UnknownNameError("--kernels", name, ("all", *FITS))
    settings = settings_of(device or _default_device(), dtype, 1)
    from dashboard.calibration_report import render_calibration
    from live.measuring.machine import facts, load
    from servetwin.calibration import calibrate_machine
    from servetwin.calibration_output import REPORT, view_of, write_document
    from servetwin.calibration_targets import targets_of
    from simcore.core.outputs import is_page, replace_text

    if not force and (busy := load(settings.device)) > BUSY:
        raise ServetwinError(
            f"{settings.device} is busy: others use {busy:.0%} of it, and times would not be its own; "
            "wait, or measure all the same with --force."
        )
    _pin(settings.device)
    names = (models or ("smollm2-135m" if settings.device == "cpu" else "llama-3.1-8b")).split(",")
    folder = out or Path("runs") / f"calibration-{settings.device.replace(':', '-')}"
    targets = targets_of(names, settings, _CONTEXT_TOKENS)
    machine = facts(settings.device, settings.number_format)
    on_cpu = settings.device == "cpu"
    timed_by = measuring_clock(clock or ("steady" if on_cpu else "real"), settings.device, folder, keep=True)
    say(", ".join(f"{name} {value}" for name, value in machine.items()))
    found = calibrate_machine(
        folder, targets, settings, machine, minutes * 60, target_error, resume, chosen, timed_by, say
    )
    write_document(found)
    replace_text(folder / REPORT, render_calibration(view_of(found, targets)), is_page)
    _tell(found)


def _default_device() -> str:
    try:
        import torch
    except ImportError:
        return "cpu"
    return "cuda:0" if torch.cuda.is_available() else "cpu"


def _pin(device: str) -> None:
    """Keep to one processor, so that no move between them shows."""
    if device == "cpu" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _tell(found: Any) -> None:
    for sentence in found.told:
        say(f"Note: {sentence}")
    for kind, fitted in found.kinds.items():
        for group, errors in fitted.checked.errors.items():
            say(f"{kind} ({group}): {errors.points} held-out points, median {errors.median:.1%}, P90 {errors.p90:.1%}")
    say(
        f"host: {found.host.step_s * 1e6:.0f} us a step and {found.host.per_request_s * 1e6:.1f} us a request, "
        f"median error {found.host.median_error:.1%}"
    )
    for one in found.mixed:
        say(f"mixed step {one.shape}: {one.measured_s * 1e3:.2f} ms measured, {one.priced_s * 1e3:.2f} ms priced, "
            f"{one.error:+.1%}")  # fmt: skip
    say(f"{found.ended.taken} measurements in {found.ended.seconds:.0f} s, as {found.ended.reason}; "
        f"expected error of steps {found.ended.expected_error:.1%}")  # fmt: skip
    say(f"Profile: {found.folder / 'profile'}\nReport:  {found.folder / 'report.html'}")
    say(f"In a scenario: cluster.accelerator={found.accelerator_choice} pricing.profile={found.folder / 'profile'}")
