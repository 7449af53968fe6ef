"""Paths in a scenario: meant from the scenario's folder, kept so that they hold from anywhere."""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from simcore.cost.calibrated import available_profiles
from simcore.cost.profile_choice import AUTO, ROOFLINE
from simcore.hardware import accelerator_names
from simcore.models import preset_names
from simcore.scenario.sections import Devices, Pool, Pricing, Scenario
from simcore.workload.config import EmpiricalLengths, StreamsWorkload, SyntheticWorkload, TraceWorkload

AnyDevices = TypeVar("AnyDevices", bound=Devices)


def with_absolute_paths(scenario: Scenario, base_dir: Path) -> Scenario:
    """The scenario with every file that it names made absolute; ``base_dir`` is where relative ones start.

    A model or accelerator known by name stays a name, even where a file is called the same. So does a text that could
    be either and is no file: whoever loads it can then say which name is nearest.
    """
    cluster = _devices(scenario.cluster, base_dir)
    if scenario.cluster.pools is not None:
        pools = [_pool(pool, base_dir) for pool in scenario.cluster.pools]
        cluster = cluster.model_copy(update={"pools": pools})
    return scenario.model_copy(
        update={
            "model": _file_or_name(scenario.model, preset_names(), base_dir),
            "cluster": cluster,
            "pricing": _pricing(scenario.pricing, scenario.cluster, base_dir),
            "workload": _workload(scenario.workload, base_dir),
        }
    )


def _devices(section: AnyDevices, base_dir: Path) -> AnyDevices:
    accelerator = _file_or_name(section.accelerator, accelerator_names(), base_dir)
    return section.model_copy(update={"accelerator": accelerator})


def _pool(pool: Pool, base_dir: Path) -> Pool:
    pricing = None if pool.pricing is None else _pricing(pool.pricing, pool, base_dir)
    return _devices(pool, base_dir).model_copy(update={"pricing": pricing})


def _pricing(section: Pricing, devices: Devices, base_dir: Path) -> Pricing:
    named = devices.accelerator
    shipped = available_profiles(named) if named in accelerator_names() else ()
    return section.model_copy(update={"profile": _file_or_name(section.profile, (AUTO, ROOFLINE, *shipped), base_dir)})


def _file_or_name(text: str, names: tuple[str, ...], base_dir: Path) -> str:
    beside = base_dir.absolute() / text
    return str(beside) if text not in names and _exists(beside) else text


def _exists(path: Path) -> bool:
    """Whether there is such a file; a text that can be no path, being too long or holding a null, names none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _workload(section: BaseModel, base_dir: Path) -> BaseModel:
    match section:
        case StreamsWorkload():
            return section.model_copy(update={"streams": [_workload(stream, base_dir) for stream in section.streams]})
        case TraceWorkload():
            return section.model_copy(update={"trace": str(base_dir.absolute() / section.trace)})
        case SyntheticWorkload(lengths=EmpiricalLengths() as lengths):
            file = str(base_dir.absolute() / lengths.file)
            return section.model_copy(update={"lengths": lengths.model_copy(update={"file": file})})
    return section
