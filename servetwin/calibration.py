"""A calibration from the machine to its folder: samples, datasheet, profile and report."""

import datetime
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import numpy as np
import yaml

from calibrate.datasheet import KNOWN_DEVICES, started_datasheet
from calibrate.fit.held_out import FITS
from calibrate.importers.generic import write_parquet
from calibrate.measuring.campaign import Ended, measure_machine
from calibrate.measuring.device import Candidate
from calibrate.measuring.fitting import Made, fitted_kinds, launched_apart, sample_tables
from calibrate.measuring.host import fit_host
from calibrate.measuring.repetition import Measured, Repetition
from calibrate.measuring.sample_log import SampleLog
from calibrate.measuring.surrogate import Peaks
from calibrate.physics import broken_fit, without_nonsense
from calibrate.profile_writer import FittedKind, Origin, write_profile
from calibrate.samples import SampleTable
from live.engine.setup import LiveSettings, LiveSetup
from live.engine.wall_clock import BusyTime
from live.measuring.clocks import MeasuringClock
from live.measuring.host_steps import HOST_PARTS, host_steps
from live.measuring.kv_blocks import block_rates
from live.measuring.machine import ceilings
from live.measuring.passes import PassProbe, PassShape
from servetwin.calibration_collectives import KIND, measure_collectives
from servetwin.live_device import Limits, LiveDevice
from simcore.core.errors import ServetwinError
from simcore.core.outputs import replacing
from simcore.core.result import Columns
from simcore.cost.assumptions import HostOverhead, RooflineEfficiency
from simcore.cost.breakdown import StepShape
from simcore.cost.calibrated import KernelProfile
from simcore.cost.calibrated.document import MeasuredHost
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.roofline import Roofline
from simcore.cost.step_cost import StepCost
from simcore.hardware import Accelerator, load_accelerator
from simcore.memory.kv_bytes import KvFormat

SAMPLES, PROFILE = "samples.jsonl", "profile"
ENGINE = "servetwin"
"""What profiles call the engine that ran the kernels."""
_HOST_BATCHES = (1, 4, 16)
_HOST_STEPS = 12
_NO_HOST = HostOverhead(step_s=0.0, per_request_s=0.0)
_MIXES = ((0.2, 0.4), (0.4, 0.25), (0.6, 0.6), (0.8, 0.1), (1.0, 0.3))
"""Decodes and tokens of a chunk, as shares of the most."""
_MIX_REPEATS = 5
_FIT_SHARE = 0.85
"""Of the time, what measuring may take before the rest begins."""


@dataclass(frozen=True, slots=True)
class Target:
    """A model that is measured for: its live engine, the limits of its steps, and those of a scenario, simulated."""

    name: str
    setup: LiveSetup
    limits: Limits
    steps: Columns | None = None


@dataclass(frozen=True, slots=True)
class Mixed:
    """A step of decodes and a chunk together, which no fit has seen: measured, and what the profile says."""

    shape: str
    measured_s: float
    priced_s: float

    @property
    def error(self) -> float:
        """Relative to what was measured."""
        return self.priced_s / self.measured_s - 1


@dataclass(frozen=True, slots=True)
class Calibration:
    """What came of it; ``told`` are sentences on what was left out or set aside."""

    folder: Path
    accelerator: Accelerator
    accelerator_choice: str
    machine: dict[str, str]
    ceilings: dict[str, float]
    ended: Ended
    measured: Sequence[Measured]
    kinds: dict[str, FittedKind]
    host: MeasuredHost | None
    mixed: list[Mixed]
    told: list[str]


def calibrate_machine(
    folder: Path,
    targets: Sequence[Target],
    settings: LiveSettings,
    machine: dict[str, str],
    seconds: float,
    target_error: float,
    resume: bool = False,
    kinds: frozenset[str] | None = None,
    clock: MeasuringClock | None = None,
    progress: Callable[[str], None] | None = None,
) -> Calibration:
    """Measure, fit and write ``folder``. Raises ``ServetwinError`` for a log of another machine, and for too little."""
    began, say = monotonic(), progress or (lambda line: None)
    log = SampleLog(folder / SAMPLES, machine)
    told = [] if log.set_aside is None else [f"{log.set_aside}: has broken lines, set aside; whole ones are kept."]
    clock = clock or MeasuringClock()
    rates = ceilings(settings.device, clock.raw_ns)
    probes = {target.name: PassProbe(target.setup.runner, clock) for target in targets}
    device = LiveDevice(
        {target.name: (probes[target.name], target.limits) for target in targets}, kinds or frozenset(FITS)
    )
    left_s = seconds * _FIT_SHARE - (monotonic() - began)
    ended = measure_machine(
        device,
        log,
        left_s,
        target_error,
        resume,
        Repetition(),
        lambda candidate, found, expected: say(_line(candidate, found, expected)),
        Peaks(rates[f"matmul_{machine['dtype'].replace('fp16', 'bf16')}_per_s"], rates["copy_bytes_per_s"]),
    )
    if kinds is None or KIND in kinds:
        told += measure_collectives(settings.device, log, resume)
    for name, rate in ceilings(settings.device, clock.raw_ns).items():
        rates[name] = max(rate, rates[name])
    rates |= block_rates(targets[0].setup.runner.kv, clock.raw_ns)
    accelerator, choice = accelerator_of(folder, settings, machine, rates)
    origin = Origin(_origin(machine), "own measurements", datetime.date.today().isoformat())
    made = Made(accelerator.name, ENGINE, machine["torch"].partition("+")[0], origin)
    tables, sentences = checked_tables(log.measured, made, folder, accelerator)
    points = {point for candidate in device.candidates() for point in candidate.kernels}
    peaks = Peaks(accelerator.peak_flops_per_s[machine["dtype"]], accelerator.memory_bandwidth_bytes_per_s)
    fitted, too_few = fitted_kinds(tables, points, made, peaks)
    told += sentences + too_few
    for kind in list(fitted):
        broken = broken_fit(kind, fitted[kind].checked.fitted)
        if broken is not None:
            told.append(broken)
            del fitted[kind]
    if not fitted:
        raise ServetwinError(f"{folder}: too few samples for any kind of kernels; measure for more --minutes.")
    if settings.device == "cpu":
        fitted = launched_apart(fitted)
    written = accelerator.name, ENGINE, made.version, fitted, machine
    write_profile(folder / PROFILE, *written)
    last, probe = targets[-1], probes[targets[-1].name]
    cost = kernel_cost(last, folder, accelerator, machine["dtype"])
    host = host_of(last, probe, cost, clock)
    write_profile(folder / PROFILE, *written, host)
    for kind, samples in tables.items():
        write_parquet(samples, folder / "samples" / f"{kind}.parquet")
    mixed = mixed_steps(last, probe, cost)
    return Calibration(folder, accelerator, choice, machine, rates, ended, log.measured, fitted, host, mixed, told)


def checked_tables(
    measured: Sequence[Measured], made: Made, folder: Path, accelerator: Accelerator
) -> tuple[dict[str, SampleTable], list[str]]:
    """Samples that may be, by kind, and a sentence for each that may not."""
    tables, told = {}, []
    for kind, samples in sample_tables(measured, made, str(folder / SAMPLES)).items():
        kept, sentences = without_nonsense(samples, accelerator)
        told += sentences
        if len(kept):
            tables[kind] = kept
    return tables, told


def accelerator_of(
    folder: Path, settings: LiveSettings, machine: dict[str, str], rates: dict[str, float]
) -> tuple[Accelerator, str]:
    """The accelerator, and how a scenario names it: one that is known, or a datasheet that is started in the folder."""
    known = KNOWN_DEVICES.get(machine["device"])
    if known is not None:
        return load_accelerator(known), known
    path = folder / f"{_slug(machine['device'])}.yaml"
    document = started_datasheet(machine["device"], rates, _memory_bytes(settings.device))
    with replacing(path, lambda there: there.read_bytes()[:10] == b"datasheet:") as beside:
        beside.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return load_accelerator(str(path)), str(path)


def host_of(target: Target, probe: PassProbe, cost: StepCost, clock: MeasuringClock) -> MeasuredHost:
    """What the engine's host adds to steps of a model: outside the model's pass, and in it beside kernels.

    On a CPU the latter was measured in passes; on a GPU it is what a pass takes beyond the prices of its kernels.
    """
    most = target.limits.decodes
    batches = tuple(sorted({min(batch, most) for batch in _HOST_BATCHES}))
    columns = host_steps(target.setup, batches, _HOST_STEPS, BusyTime(clock))
    alone = columns["chunks"] == 0
    decoding, context = columns["decoding"][alone], columns["decode_context"][alone]
    outside_s = np.sum([columns[f"{part}_ns"][alone] for part in HOST_PARTS], axis=0) * 1e-9
    if probe.on_host:
        rests = {}
        for batch in batches:
            found = [probe.run(PassShape(decodes=batch, context=_HOST_STEPS)).rest_s for _ in range(_MIX_REPEATS)]
            rests[batch] = float(np.median(found))
        within_s = np.interp(decoding, list(rests), list(rests.values()))
    else:
        shapes = (StepShape(int(size), int(held // size)) for size, held in zip(decoding, context, strict=True))
        kernels_s = np.array([sum(one.seconds for one in cost.terms(shape)) for shape in shapes])
        taken_s = (columns["forward_ns"] + columns["sample_ns"])[alone] * 1e-9
        within_s = np.maximum(taken_s - kernels_s, 0.0)
    return fit_host(decoding.astype(np.float64), outside_s + within_s)


def kernel_cost(target: Target, folder: Path, accelerator: Accelerator, dtype: str) -> StepCost:
    """Prices of a model's kernels by the profile in the folder, without the host."""
    prices = KernelPrices(Roofline.of(accelerator, RooflineEfficiency(), dtype), KernelProfile(folder / PROFILE))
    return StepCost(target.setup.runner.config.spec, prices, _NO_HOST, dtype, KvFormat.of(dtype), 1)


def mixed_steps(target: Target, probe: PassProbe, cost: StepCost) -> list[Mixed]:
    """Steps of decodes beside a chunk, drawn over the limits of a model; kernels alone, without the host."""
    limits = target.limits
    found = []
    for place, (decodes, chunk) in enumerate(_MIXES):
        context = max(round(limits.context * (0.2 + 0.12 * place)), 2)
        batch, tokens = max(round(limits.decodes * decodes), 1), max(round(limits.prompt_tokens * chunk), 2)
        batch = min(batch, max((probe.tokens - tokens) // (context + 16), 1))
        shape = StepShape(batch, context - 1, ((tokens, 0),))
        times = [probe.run(PassShape(batch, context, ((tokens, 0),))) for _ in range(_MIX_REPEATS)]
        calm = [one for one in times if not one.disturbed] or times
        measured_s = float(np.median([one.total_s - one.rest_s for one in calm]))
        found.append(Mixed(str(shape), measured_s, sum(one.seconds for one in cost.terms(shape))))
    return found


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "accelerator"


def _origin(machine: dict[str, str]) -> str:
    return "measured by servetwin calibrate: " + ", ".join(f"{name} {value}" for name, value in machine.items())


def _memory_bytes(device: str) -> int:
    import torch

    if device.startswith("cuda"):
        return int(torch.cuda.get_device_properties(torch.device(device)).total_memory)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _line(candidate: Candidate, found: Measured, expected_error: float) -> str:
    so_far = "coarse design" if expected_error != expected_error else f"expected error {expected_error:.1%}"
    return f"{candidate.name:32s} {found.total_s * 1e3:9.3f} ms, {found.repeats:3d} repeats, {so_far}"
