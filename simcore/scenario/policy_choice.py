"""From the name and parameters of a policy in a scenario to the policy itself."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from policies.registry import UnknownPolicyError, policy_class, policy_names
from simcore.errors import InputError, Phrase, ServetwinError, UnknownNameError, nearest_name
from simcore.validation import explain


def build_policy(kind: str, section: Mapping[str, Any], field: str) -> Any:
    """A fresh policy of a kind from its section, ``{"name": ..., parameter: value, ...}``, found at ``field``.

    Raises ``UnknownNameError`` for the name, ``ServetwinError`` for a parameter that the policy does not take.
    """
    name = section.get("name", Phrase("missing"))
    if not isinstance(name, str) or isinstance(name, Phrase):
        raise InputError(f"{field}.name", name, f"one of {', '.join(policy_names(kind))}")
    try:
        chosen = policy_class(kind, name)
    except UnknownPolicyError as error:
        raise UnknownNameError(f"{field}.name", name, error.known) from None
    parameters = _parameters(chosen)
    values = {key: value for key, value in section.items() if key != "name"}
    for key in values:
        if key not in parameters.model_fields:
            raise _unknown_parameter(f"{field}.{key}", str(key), name, tuple(parameters.model_fields))
    try:
        given = parameters.model_validate(values)
    except ValidationError as error:
        raise explain(error, parameters, f"{field}.") from None
    try:
        return chosen(**{key: getattr(given, key) for key in type(given).model_fields})
    except ValueError as error:
        raise ServetwinError(f"{field}.{error}.") from error


def _unknown_parameter(field: str, key: str, policy: str, known: tuple[str, ...]) -> InputError:
    expected = f"a parameter of {policy}: {', '.join(sorted(known))}" if known else f"nothing, as {policy} has none"
    return InputError(field, Phrase("an unknown parameter"), expected, nearest_name(key, known))


def complete_policy(kind: str, section: Mapping[str, Any], field: str) -> dict[str, Any]:
    """The section with every parameter's default filled in; raises as ``build_policy`` does."""
    policy = build_policy(kind, section, field)
    given = {item.name: getattr(policy, item.name) for item in fields(policy) if item.init}
    return {"name": section["name"], **given}


def _parameters(policy: type[Any]) -> type[BaseModel]:
    """A pydantic model of the fields that a policy's constructor takes."""
    hints = get_type_hints(policy)
    taken: dict[str, Any] = {
        item.name: (hints[item.name], ... if item.default is MISSING else item.default)
        for item in fields(policy)
        if item.init
    }
    config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    return create_model(policy.__name__, __config__=config, **taken)
