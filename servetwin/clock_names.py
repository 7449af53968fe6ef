"""The clocks by which a machine is measured, as users name them."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from simcore.core.errors import InputError


class ClockName(StrEnum):
    """By which clock a live run is timed."""

    REAL = "real"
    BUSY = "busy"
    CPU = "cpu"
    STEADY = "steady"


class MeasuringClockName(StrEnum):
    """By which clock a calibration is timed."""

    REAL = "real"
    CPU = "cpu"
    STEADY = "steady"


CalibrationClock = Annotated[
    MeasuringClockName | None,
    typer.Option(
        "--clock",
        help="real; cpu, which counts what the own thread computes; or steady, which is cpu's, corrected for a machine "
        "whose speed changes. By default steady on a CPU, and real on a GPU.",
    ),
]


def measuring_clock(name: str, device: str, calibration: Path | None = None, keep: bool = False) -> Any:
    """The clock of a name; one that is steady goes by the speed at which ``calibration``, a folder, was measured.

    With ``keep`` the folder is one that is being measured. Raises ``InputError`` for a clock of the CPU on a GPU, and
    ``FileError`` for a folder without a speed.
    """
    from live.measuring.clocks import MeasuringClock, SteadyClock, thread_clock

    if name in (ClockName.REAL, ClockName.BUSY):
        return MeasuringClock()
    if not device.startswith("cpu"):
        raise InputError("--clock", name, "real or busy on a GPU, for which the CPU waits")
    if name == ClockName.CPU:
        return thread_clock()
    if calibration is None:
        return SteadyClock()
    return SteadyClock.kept_in(calibration) if keep else SteadyClock.of_folder(calibration)
