"""From a YAML file, or a mapping, to a checked scenario."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from simcore.errors import FileError, InputError, UnknownNameError
from simcore.scenario.policy_choice import complete_policy
from simcore.scenario.sections import Scenario
from simcore.validation import explain


def engine_names() -> tuple[str, ...]:
    """The names of the engine presets, sorted."""
    presets = files("simcore.engines").iterdir()
    return tuple(sorted(path.name.removesuffix(".yaml") for path in presets if path.name.endswith(".yaml")))


def read_scenario(path: Path) -> dict[str, Any]:
    """The document in a YAML file, not yet checked; raises ``FileError`` if there is none."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(path, "no such scenario file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(path, f"cannot be read ({error})") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise FileError(path, f"not valid YAML: {error.problem}", line) from error
    except yaml.YAMLError as error:
        raise FileError(path, f"not valid YAML: {error}") from error
    if not isinstance(document, dict):
        raise FileError(path, "expected a mapping with model, cluster and workload")
    return document


def override(document: Mapping[str, Any], assignment: str) -> dict[str, Any]:
    """The document with one ``key=value`` applied: the key a dotted path, the value in YAML."""
    key, equals, text = assignment.partition("=")
    if not equals or not all(key.split(".")):
        raise InputError("--set", assignment, "KEY=VALUE, such as workload.arrivals.rate_per_s=12")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise InputError(f"--set {key}", text, "a value in YAML") from None
    nested: Any = value
    for part in reversed(key.split(".")):
        nested = {part: nested}
    return _merged(document, nested)


def parse_scenario(document: Mapping[str, Any]) -> Scenario:
    """Check a document and fill in what the engine preset and the defaults say.

    Raises ``InputError`` for the first thing that is wrong with it.
    """
    engine = document.get("engine", "vllm-v1")
    if engine not in engine_names():
        raise UnknownNameError("engine", str(engine), engine_names())
    preset = yaml.safe_load((files("simcore.engines") / f"{engine}.yaml").read_text(encoding="utf-8"))
    complete = _merged(preset, _with_named_policies(document))
    try:
        scenario = Scenario.model_validate(complete)
    except ValidationError as error:
        raise explain(error, Scenario) from error
    scheduler, cluster = scenario.scheduler, scenario.cluster
    victim = complete_policy("preemption", scheduler.preemption.victim, "scheduler.preemption.victim")
    scheduler = scheduler.model_copy(
        update={
            "ordering": complete_policy("ordering", scheduler.ordering, "scheduler.ordering"),
            "batching": complete_policy("batching", scheduler.batching, "scheduler.batching"),
            "preemption": scheduler.preemption.model_copy(update={"victim": victim}),
        }
    )
    routing = complete_policy("routing", cluster.routing, "cluster.routing")
    cluster = cluster.model_copy(update={"routing": routing})
    return scenario.model_copy(update={"scheduler": scheduler, "cluster": cluster})


_POLICY_PLACES = (
    ("cluster", "routing"),
    ("scheduler", "ordering"),
    ("scheduler", "batching"),
    ("scheduler", "preemption", "victim"),
)


def _with_named_policies(document: Mapping[str, Any]) -> dict[str, Any]:
    """Let a bare name stand for a policy without parameters: ``ordering: fcfs``."""
    expanded = dict(document)
    for path in _POLICY_PLACES:
        place: Any = expanded
        for part in path:
            place = place.get(part) if isinstance(place, Mapping) else None
        if isinstance(place, str):
            nested: dict[str, Any] = {"name": place}
            for part in reversed(path):
                nested = {part: nested}
            expanded = _merged(expanded, nested)
    return expanded


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid over ``base``; a section that names another policy replaces the one below it whole."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            renamed = "name" in value and value["name"] != below.get("name", value["name"])
            merged[key] = dict(value) if renamed else _merged(below, value)
        else:
            merged[key] = value
    return merged
