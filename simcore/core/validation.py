"""One clear sentence out of a pydantic validation error."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pydantic
from pydantic_core import ErrorDetails

from simcore.core.errors import InputError, Phrase, UnknownNameError, nearest_name, shortened

Schema = Mapping[str, Any]  # a pydantic core schema, or a part of one

_BOUNDS = {"gt": "greater than", "ge": "of at least", "lt": "less than", "le": "of at most"}
_NOUNS = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false"}
_COLLECTIONS = {"list": "a list", "tuple": "a list", "set": "a list", "dict": "a mapping"}
_UNKNOWN_FIELD = ("extra_forbidden", "invalid_key")
_BEST_DESCRIBED = frozenset(
    ("greater_than", "greater_than_equal", "less_than", "less_than_equal", "string_too_short", "literal_error")
)
"""Kinds of errors that what the schema allows explains better than pydantic's message."""
_MESSAGE_START = re.compile(r"^(\w+) should ")
_LONGEST_MAPPING = 300
_LONGEST_LIST = 60
"""Characters of a list that is shown as it stands."""
_BEYOND_WORDS: Schema = {"type": "any"}


def explain(error: pydantic.ValidationError, model: type[pydantic.BaseModel], prefix: str = "") -> InputError:
    """The most telling problem in ``error``, which validating some input against ``model`` raised.

    The field is named by its dotted path as the user wrote it (without the union members that pydantic tried),
    with ``prefix`` put in front as it stands ("cluster.", "h100.yaml: "). An unknown field goes before any
    other problem, since it usually is a misspelling and the others its echo; then the order of the fields in
    ``model`` decides. The message of a ``ValueError`` from a custom validator is taken as the words for what was
    expected.
    """
    schemas = _SchemaTree(model)
    found = _most_telling([schemas.locate(detail) for detail in error.errors(include_url=False)])
    kind, value = found.detail["type"], found.detail["input"]
    field = prefix + (".".join(found.path) or "the input")
    if kind in _UNKNOWN_FIELD or (found.siblings and found.detail["loc"][-1] == "[key]"):
        expected = f"one of {', '.join(sorted(found.siblings))}" if found.siblings else "no such field"
        hint = nearest_name(found.path[-1], found.siblings)
        return InputError(field, Phrase("an unknown field"), expected, hint)
    if kind in ("union_tag_invalid", "union_tag_not_found") and "choices" in found.schema:
        return _bad_tag(found, field)
    if kind in ("literal_error", "enum") and isinstance(value, str):
        return UnknownNameError(field, value, _names(found.schema))
    if found.detail["loc"][-1:] == ("[key]",):
        return InputError(field, Phrase(f"the key {value!r}"), _expectation(found, schemas))
    return InputError(field, _shown(found.detail), _expectation(found, schemas))


@dataclass(frozen=True, slots=True)
class _Located:
    """One pydantic error with the path the user wrote, the schema there and the fields known beside it."""

    detail: ErrorDetails
    path: tuple[str, ...]
    schema: Schema
    siblings: tuple[str, ...]


class _SchemaTree:
    """The core schema of a model, to be walked without its wrappers (defaults, validators, references)."""

    def __init__(self, model: type[pydantic.BaseModel]) -> None:
        root: Schema = model.__pydantic_core_schema__
        parts = root["definitions"] if root["type"] == "definitions" else ()
        self._definitions: dict[str, Schema] = {part["ref"]: part for part in parts}
        self._root = root["schema"] if root["type"] == "definitions" else root

    def locate(self, detail: ErrorDetails) -> _Located:
        """Follow the location in ``detail`` from the root, leaving out the union members that it names."""
        path: list[str] = []
        siblings: tuple[str, ...] = ()
        schema = self._bare(self._root)
        steps = [step for step in detail["loc"] if step != "[key]"]
        for position, step in enumerate(steps):
            inside = self._bare(schema["schema"]) if schema["type"] == "nullable" else schema
            if inside["type"] == "tagged-union":
                schema = self._bare(inside["choices"].get(step, _BEYOND_WORDS))
            elif inside["type"] == "union":
                # An error about a member as a whole is one about the union.
                schema = inside if position == len(steps) - 1 else self._member(inside, step)
            else:
                path.append(str(step))
                siblings = _known_fields(inside)
                of_key = position == len(steps) - 1 and detail["loc"][-1] == "[key]"
                schema = self._bare(inside.get("keys_schema", _BEYOND_WORDS)) if of_key else self._child(inside, step)
        schema = self._bare(schema["schema"]) if schema["type"] == "nullable" else schema
        return _Located(detail, tuple(path), schema, siblings)

    def describe(self, schema: Schema) -> str | None:
        """What a user should write for ``schema``, or None where that is beyond plain words."""
        kind = schema["type"]
        if kind in _NOUNS:
            if schema.get("min_length"):
                return f"{_NOUNS[kind]} that is not empty"
            bounds = " and ".join(f"{words} {schema[key]:.15g}" for key, words in _BOUNDS.items() if key in schema)
            return f"{_NOUNS[kind]} {bounds}".rstrip()
        if kind in ("literal", "enum"):
            names = sorted(_names(schema))
            return f"one of {', '.join(names)}" if len(names) > 1 else names[0]
        if kind == "tagged-union":
            if not isinstance(schema["discriminator"], str):
                return schema.get("custom_error_message")
            tags = ", ".join(sorted(map(str, schema["choices"])))
            return f"a mapping whose {schema['discriminator']} is one of {tags}"
        if kind == "union":
            members = [self.describe(self._bare(member)) for member in _members(schema)]
            return None if None in members else " or ".join(filter(None, members))
        if _known_fields(schema):
            return f"a mapping of {', '.join(_known_fields(schema))}"
        return _COLLECTIONS.get(kind)

    def _bare(self, schema: Schema) -> Schema:
        while True:
            if schema["type"] == "definition-ref":
                schema = self._definitions[schema["schema_ref"]]
            elif schema["type"] in ("default", "definitions") or schema["type"].startswith("function-"):
                schema = schema.get("schema", _BEYOND_WORDS)
            else:
                return schema

    def _child(self, schema: Schema, step: int | str) -> Schema:
        if schema["type"] == "model":
            for name, field in _fields(schema).items():
                if step in (name, field.get("validation_alias")):
                    return self._bare(field["schema"])
        inner = schema.get("items_schema", schema.get("values_schema", _BEYOND_WORDS))
        if isinstance(inner, list) and inner and isinstance(step, int):  # of a tuple, whose last may stand for many
            inner = inner[min(step, len(inner) - 1)]
        return self._bare(inner) if isinstance(inner, Mapping) else _BEYOND_WORDS

    def _member(self, union: Schema, label: int | str) -> Schema:
        for member in map(self._bare, _members(union)):
            if label == (member["cls"].__name__ if member["type"] == "model" else member["type"]):
                return member
        return _BEYOND_WORDS


def _most_telling(found: list[_Located]) -> _Located:
    for candidate in found:
        if candidate.detail["type"] in _UNKNOWN_FIELD:
            return candidate
    # Only members of a plain union report both a field and something inside it; the inner problem says more.
    inside = [other for other in found if other.path[: len(found[0].path)] == found[0].path]
    return max(inside, key=lambda other: len(other.path)) if found[0].path else found[0]


def _bad_tag(found: _Located, field: str) -> InputError:
    discriminator = found.schema["discriminator"]
    if isinstance(discriminator, str):
        field = f"{field}.{discriminator}"
    tags = sorted(map(str, found.schema["choices"]))
    if found.detail["type"] == "union_tag_not_found":
        return InputError(field, Phrase("missing"), f"one of {', '.join(tags)}")
    return UnknownNameError(field, found.detail["ctx"]["tag"], tags)


def _shown(detail: ErrorDetails) -> object:
    value = detail["input"]
    if detail["type"] == "missing":
        return Phrase("missing")
    if isinstance(value, Mapping):
        # Where the fields are right one by one, it is their combination that is wrong.
        given = [str(key) for key, inner in value.items() if inner is not None]
        together = detail["type"] == "value_error" and given
        return Phrase(shortened(f"a mapping of {', '.join(given)}", _LONGEST_MAPPING) if together else "a mapping")
    if isinstance(value, list | tuple | set):
        text = str(list(value)) if len(value) <= _LONGEST_LIST else ""
        return Phrase(text if 0 < len(text) <= _LONGEST_LIST else "a list")
    return value


def _expectation(found: _Located, schemas: _SchemaTree) -> str:
    kind = found.detail["type"]
    if kind in ("value_error", "assertion_error"):
        return str(found.detail["ctx"]["error"])
    if kind == "missing":
        return schemas.describe(found.schema) or "a value"
    if kind == "too_short":
        least = found.detail["ctx"]["min_length"]
        return f"{schemas.describe(found.schema)} that is not empty" if least == 1 else f"at least {least} items"
    said = None
    if kind in _BEST_DESCRIBED or kind.endswith(("_type", "_parsing", "_from_float")):
        said = schemas.describe(found.schema)
    return said or _MESSAGE_START.sub(r"\1 to ", found.detail["msg"].removeprefix("Input should be "))


def _fields(model: Schema) -> Mapping[str, Schema]:
    inner = model["schema"]
    while inner["type"] != "model-fields":
        if "schema" not in inner:
            return {}
        inner = inner["schema"]
    fields: Mapping[str, Schema] = inner["fields"]
    return fields


def _known_fields(schema: Schema) -> tuple[str, ...]:
    """The names a user may write inside ``schema``: fields of a model, or keys of a closed mapping."""
    if schema["type"] == "model":
        aliases = ((name, field.get("validation_alias")) for name, field in _fields(schema).items())
        return tuple(alias if isinstance(alias, str) else name for name, alias in aliases)
    keys = schema.get("keys_schema", {})
    return tuple(map(str, keys["expected"])) if keys.get("type") == "literal" else ()


def _members(union: Schema) -> Iterable[Schema]:
    return (choice[0] if isinstance(choice, tuple) else choice for choice in union["choices"])


def _names(schema: Schema) -> list[str]:
    """The values that a literal or an enumeration allows, or those among the choices of a union."""
    if schema["type"] == "union":
        choices = (choice[0] if isinstance(choice, tuple) else choice for choice in schema["choices"])
        return [name for choice in choices for name in _names(choice)]
    if schema["type"] == "enum":
        return [str(member.value) for member in schema["members"]]
    return [str(value) for value in schema.get("expected", ())]
