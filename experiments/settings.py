"""Variants of a scenario: values put in at dotted paths, and few words for them."""

import json
from collections.abc import Mapping
from typing import Any

from simcore.core.errors import InputError
from simcore.scenario import override


def with_settings(document: Mapping[str, Any], setting: Mapping[str, Any]) -> dict[str, Any]:
    """The document with every key of ``setting`` replaced, as ``--set`` would."""
    return override(document, [f"{key}={json.dumps(value)}" for key, value in setting.items()])


def worded(value: Any) -> str:
    """A value in few characters: text as it stands, a policy as its name and parameters, all else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        parameters = [f"{key}={worded(part)}" for key, part in value.items() if key != "name"]
        return f"{value['name']}({', '.join(parameters)})" if parameters else str(value["name"])
    try:
        return json.dumps(value)
    except TypeError:
        raise InputError("--vary", value, "plain data, as a scenario file has it") from None


def label_of(setting: Mapping[str, Any]) -> str:
    """What tells a variant apart: ``sjf``, or ``max_running_requests=8``, or several of the kind."""
    parts = []
    for key, value in setting.items():
        *above, last = key.split(".")
        policy_named = (last == "name" and bool(above)) or isinstance(value, str | Mapping)
        short = above[-1] if last == "name" and above else last
        parts.append(worded(value) if policy_named and len(setting) == 1 else f"{short}={worded(value)}")
    return ", ".join(parts)
