"""From the name and parameters of a policy in a scenario to the policy itself."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from policies.capabilities import CapabilityError, check_capabilities, check_time_dependence
from policies.commitment import Commitment
from policies.ordering import Ordering
from policies.prediction import LengthPredictor
from policies.registry import (
    BrokenPolicyError,
    UnknownPolicyError,
    is_built_in,
    is_policy,
    policy_class,
    policy_name,
    policy_names,
)
from simcore.core.errors import InputError, Phrase, ServetwinError, UnknownNameError, nearest_name, printable
from simcore.core.validation import explain
from simcore.scenario.sections import with_whole_keys

_KINDS: dict[Any, str] = {LengthPredictor: "prediction", Ordering: "ordering", Commitment: "commitment"}
"""Policies that other policies take as parameters, by the type of the parameter."""
_LIMITS = ("max_batched_tokens", "max_running_requests")


def build_policy(kind: str, section: Mapping[str, Any], field: str) -> Any:
    """A fresh policy of a kind from its section, ``{"name": ..., parameter: value, ...}``, found at ``field``.

    Raises ``UnknownNameError`` for the name, ``ServetwinError`` for a parameter that the policy does not take and for a
    policy that does not announce what it does.
    """
    name = section.get("name", Phrase("missing"))
    if not isinstance(name, str) or isinstance(name, Phrase):
        raise InputError(f"{field}.name", name, f"one of {', '.join(policy_names(kind))}")
    try:
        chosen = find_policy(kind, name)
    except UnknownPolicyError as error:
        raise UnknownNameError(f"{field}.name", name, error.known) from None
    if not is_dataclass(chosen):
        raise ServetwinError(
            f"{field}.name is {name!r}, whose class {chosen.__qualname__} is no dataclass, as it must be."
        )
    parameters = _parameters(chosen)
    values = {key: value for key, value in section.items() if key != "name"}
    for key in values:
        if key not in parameters.model_fields:
            raise _unknown_parameter(f"{field}.{key}", str(key), name, tuple(parameters.model_fields))
    nested = nested_kinds(chosen)
    try:
        plain = {key: _as_yaml_has_it(value, parameters, key) for key, value in values.items() if key not in nested}
        given = parameters.model_validate(plain)
    except ValidationError as error:
        raise explain(error, parameters, f"{field}.") from None
    arguments = {key: getattr(given, key) for key in type(given).model_fields if key not in nested}
    for key in values.keys() & nested.keys():
        arguments[key] = _nested_policy(nested[key], values[key], f"{field}.{key}")
    try:
        policy = chosen(**arguments)
    except ValueError as error:
        raise ServetwinError(f"{field}.{error}.") from error
    try:
        check_capabilities(chosen)
        if isinstance(policy, Ordering) and not is_built_in(chosen):
            check_time_dependence(policy)
    except CapabilityError as error:
        raise ServetwinError(f"{field}.name is {name!r}, which cannot be used: {error}.") from None
    return policy


def find_policy(kind: str, name: str) -> type[Any]:
    """As ``policy_class``; raises ``ServetwinError`` for one that is registered but cannot be imported."""
    try:
        return policy_class(kind, name)
    except BrokenPolicyError as error:
        raise ServetwinError(printable(f"The {kind} policy {name!r} is registered, but {error}.")) from error


def with_objectives(
    kind: str, section: Mapping[str, Any], objectives: Mapping[str, Mapping[str, float]]
) -> Mapping[str, Any]:
    """The section with limits that a policy takes over from the scenario's objectives, where it does not state them.

    A policy's ``from_objectives`` maps such parameters to metrics; of several limits for one the tightest is taken.
    """
    name = section.get("name")
    if not isinstance(name, str) or not is_policy(kind, name):
        return section
    taken_over = getattr(find_policy(kind, name), "from_objectives", {})
    limits = {parameter: objectives[metric] for parameter, metric in taken_over.items() if objectives[metric]}
    return {parameter: min(limit.values()) for parameter, limit in limits.items()} | dict(section)


def with_data_parallel_ranks(kind: str, section: Mapping[str, Any], groups: int) -> Mapping[str, Any]:
    """The section with as many ``data_parallel_ranks`` as there are, if a policy has these and none are stated."""
    return (
        {"data_parallel_ranks": groups} | dict(section)
        if "data_parallel_ranks" in _defaults(kind, section)
        else section
    )


def with_limits_of_groups(
    kind: str, section: Mapping[str, Any], stated: Collection[str], groups: int
) -> Mapping[str, Any]:
    """The section with limits that are not ``stated`` as many times as there are groups, each of which has them."""
    limits = _defaults(kind, section) | dict(section)
    unstated = [name for name in _LIMITS if name not in stated and isinstance(limits.get(name), int)]
    return dict(section) | {name: groups * limits[name] for name in unstated}


def _defaults(kind: str, section: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the policy that a section names, with their defaults; none of one that is not known."""
    name = section.get("name")
    if not isinstance(name, str) or not is_policy(kind, name):
        return {}
    parameters = getattr(find_policy(kind, name), "__dataclass_fields__", {})
    return {name: item.default for name, item in parameters.items() if item.init}


def _unknown_parameter(field: str, key: str, policy: str, known: tuple[str, ...]) -> InputError:
    expected = f"a parameter of {policy}: {', '.join(sorted(known))}" if known else f"nothing, as {policy} has none"
    return InputError(field, Phrase("an unknown parameter"), expected, nearest_name(key, known))


def complete_policy(kind: str, section: Mapping[str, Any], field: str) -> dict[str, Any]:
    """The section with every parameter's default filled in; raises as ``build_policy`` does."""
    policy = build_policy(kind, section, field)
    return {"name": section["name"], **_described(policy)}


def _described(policy: Any) -> dict[str, Any]:
    """The parameters of a policy; a policy among them is a section of its own."""
    nested = nested_kinds(type(policy))
    described: dict[str, Any] = {}
    for item in fields(policy):
        if item.init:
            value = getattr(policy, item.name)
            if item.name in nested:
                value = {"name": policy_name(nested[item.name], type(value)), **_described(value)}
            described[item.name] = value
    return described


def _nested_policy(kind: str, section: Any, field: str) -> Any:
    """A policy that is a parameter of another: its section, or its bare name."""
    if isinstance(section, str):
        section = {"name": section}
    if not isinstance(section, Mapping):
        raise InputError(field, section, f"a mapping whose name is one of {', '.join(policy_names(kind))}")
    return build_policy(kind, section, field)


def nested_kinds(policy: type[Any]) -> dict[str, str]:
    """The parameters of a policy that are policies themselves, each with its kind."""
    return {name: _KINDS[hint] for name, hint in _type_hints(policy).items() if hint in _KINDS}


_type_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


@cache
def _parameters(policy: type[Any]) -> type[BaseModel]:
    """A pydantic model of the fields that a policy's constructor takes."""
    hints, nested = _type_hints(policy), nested_kinds(policy)
    taken: dict[str, Any] = {
        item.name: (Any if item.name in nested else hints[item.name], _default(item))
        for item in fields(policy)
        if item.init
    }
    config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    return create_model(policy.__name__, __config__=config, **taken)


def _as_yaml_has_it(value: Any, parameters: type[BaseModel], key: str) -> Any:
    """A value for a strict check: what is a tuple or has whole numbers as keys in Python has neither in YAML."""
    if isinstance(value, list) and get_origin(parameters.model_fields[key].annotation) is tuple:
        return tuple(value)
    return with_whole_keys(value)


def _default(item: Field[Any]) -> Any:
    if item.default is not MISSING:
        return item.default
    return ... if item.default_factory is MISSING else item.default_factory()
