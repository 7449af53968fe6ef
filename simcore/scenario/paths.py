"""Paths in a scenario: meant from the scenario's folder, kept so that they hold from anywhere."""

from pathlib import Path

from pydantic import BaseModel

from simcore.cost.calibrated import available_profiles
from simcore.cost.profile_choice import AUTO, ROOFLINE
from simcore.hardware import accelerator_names
from simcore.models import preset_names
from simcore.scenario.sections import Scenario
from simcore.workload.config import EmpiricalLengths, StreamsWorkload, SyntheticWorkload, TraceWorkload


def with_absolute_paths(scenario: Scenario, base_dir: Path) -> Scenario:
    """The scenario with every file that it names made absolute; ``base_dir`` is where relative ones start.

    A model or accelerator known by name stays a name, even where a file is called the same. So does a text that could
    be either and is no file: whoever loads it can then say which name is nearest.
    """
    named = scenario.cluster.accelerator
    accelerator = _file_or_name(named, accelerator_names(), base_dir)
    shipped = available_profiles(named) if named in accelerator_names() else ()
    profile = _file_or_name(scenario.pricing.profile, (AUTO, ROOFLINE, *shipped), base_dir)
    return scenario.model_copy(
        update={
            "model": _file_or_name(scenario.model, preset_names(), base_dir),
            "cluster": scenario.cluster.model_copy(update={"accelerator": accelerator}),
            "pricing": scenario.pricing.model_copy(update={"profile": profile}),
            "workload": _workload(scenario.workload, base_dir),
        }
    )


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
