"""Values of keys as options of the command line state them: ``KEY=A,B``."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from simcore.core.errors import InputError
from simcore.core.yaml_text import parse_yaml, yaml_problem


def varied_values(assignments: Sequence[str]) -> Mapping[str, list[Any]]:
    """The values of each key, a list in YAML without its brackets."""
    varied: dict[str, list[Any]] = {}
    for assignment in assignments:
        key, equals, values = assignment.partition("=")
        key = key.strip()
        if not equals or not all(key.split(".")):
            raise InputError("--vary", assignment, "KEY=VALUE,VALUE, such as scheduler.ordering.name=fcfs,sjf")
        if key in varied:
            raise InputError("--vary", assignment, f"all values of {key} in one --vary")
        try:
            varied[key] = parse_yaml(f"[{values}]")
        except yaml.YAMLError as error:
            raise InputError(f"--vary {key}", values, f"values in YAML ({yaml_problem(error)})") from None
    return varied


def names(text: str | None) -> tuple[str, ...]:
    """Names with commas between them."""
    return () if text is None else tuple(part.strip() for part in text.split(",") if part.strip())
