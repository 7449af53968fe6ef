"""A calibration's folder as a scenario takes it, and whether it is of the machine at hand."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simcore.core.errors import InputError
from simcore.cost.calibrated import KernelProfile

_PROFILE = "profile"


@dataclass(frozen=True, slots=True)
class UsedCalibration:
    """The profile, its folder, and how a scenario names its accelerator."""

    profile: KernelProfile
    folder: Path
    accelerator: str

    def described(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A scenario on the machine of the calibration, at its prices."""
        cluster = document.get("cluster")
        cluster = {**(cluster if isinstance(cluster, Mapping) else {}), "accelerator": self.accelerator}
        return {**document, "cluster": cluster, "pricing": {"profile": str(self.folder)}}


def open_calibration(path: Path, machine: Mapping[str, str] | None = None) -> UsedCalibration:
    """The calibration in a folder that ``servetwin calibrate`` wrote.

    Raises ``FileError`` where there is none, and ``InputError`` for one of another ``machine``, with what differs.
    """
    folder = (path / _PROFILE).resolve()
    profile = KernelProfile(folder)
    datasheet = path.resolve() / f"{profile.accelerator}.yaml"
    accelerator = str(datasheet) if datasheet.is_file() else profile.accelerator
    for name, value in (machine or {}).items():
        if profile.machine.get(name) != value:
            there = profile.machine.get(name, "not stated")
            expected = f"one of this machine: {name} is {value} here, and {there} in the profile"
            raise InputError("--profile", str(path), expected)
    return UsedCalibration(profile, folder, accelerator)
