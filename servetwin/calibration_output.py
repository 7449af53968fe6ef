"""What a calibration leaves beside its profile: all figures as a document, and what its report shows."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrate.profile_writer import FittedKind
from dashboard.calibration_report import CalibrationView, MixedStep, Needed
from servetwin.calibration import Calibration, Target
from simcore.core.outputs import replacing

DOCUMENT, REPORT = "calibration.json", "report.html"


def document_of(calibration: Calibration) -> dict[str, Any]:
    """All figures as plain data."""
    errors = {
        kind: {
            group: {"points": of.points, "median": of.median, "p90": of.p90}
            for group, of in fitted.checked.errors.items()
        }
        for kind, fitted in calibration.kinds.items()
    }
    return {
        "calibration_schema": 1,
        "machine": calibration.machine,
        "accelerator": calibration.accelerator_choice,
        "ceilings": calibration.ceilings,
        "seconds": calibration.ended.seconds,
        "measurements": calibration.ended.taken,
        "ended_because": calibration.ended.reason,
        "expected_error": calibration.ended.expected_error,
        "held_out": errors,
        "host": None if calibration.host is None else calibration.host.model_dump(),
        "mixed_steps": [asdict(one) for one in calibration.mixed],
        "told": calibration.told,
    }


def view_of(calibration: Calibration, targets: Sequence[Target]) -> CalibrationView:
    """What the report shows."""
    about = {**calibration.machine, **{name: f"{rate:.4g}" for name, rate in calibration.ceilings.items()}}
    host = calibration.host
    if host is not None:
        about["host"] = f"{host.step_s * 1e6:.0f} us a step, {host.per_request_s * 1e6:.1f} us a request"
    ended = calibration.ended
    about["measurements"] = f"{ended.taken} in {ended.seconds:.0f} s: {ended.reason}"
    return CalibrationView(
        title=f"Calibration of {calibration.accelerator.name}",
        about=about,
        told=calibration.told,
        fits={kind: fitted.checked for kind, fitted in calibration.kinds.items()},
        accelerator=calibration.accelerator,
        mixed=[MixedStep(one.shape, one.measured_s, one.priced_s) for one in calibration.mixed],
        needed=[one for target in targets for one in _needed(target, calibration)],
    )


def _needed(target: Target, calibration: Calibration) -> Iterator[Needed]:
    """The attention that a scenario's simulated steps ask for, and which of it lies between measured sizes."""
    steps, kinds = target.steps, calibration.kinds
    if steps is None:
        return
    decoding, prompts = steps["decoding_requests"], steps["prefill_tokens"]
    if "generation_attention" in kinds:
        rows = decoding > 0
        batch, context = decoding[rows] * 1.0, steps["context_tokens"][rows] / decoding[rows]
        covered = _between(batch, kinds["generation_attention"], "batch")
        covered &= _between(context, kinds["generation_attention"], "context")
        yield Needed(target.name, "generation_attention", batch, context, covered)
    if "context_attention" in kinds:
        rows = prompts > 0
        tokens = prompts[rows] * 1.0
        covered = _between(tokens, kinds["context_attention"], "tokens")
        yield Needed(target.name, "context_attention", tokens, decoding[rows] * 1.0, covered)


def _between(values: NDArray[np.float64], kind: FittedKind, name: str) -> NDArray[np.bool_]:
    measured = kind.checked.samples.columns[name]
    return np.asarray((values >= measured.min()) & (values <= measured.max()))


def write_document(calibration: Calibration) -> None:
    """``calibration.json``, whole or not at all."""
    path = calibration.folder / DOCUMENT
    with replacing(path, lambda there: there.read_bytes().startswith(b'{\n  "calibration_schema"')) as beside:
        beside.write_text(json.dumps(document_of(calibration), indent=2) + "\n", encoding="utf-8")
