"""Writes docs/reference/scenario.md: ``tools/regenerate.py`` calls it.

The prose stands in ``tools/scenario_page.md``. A line ``{Cluster}`` there becomes the table of that section: fields and
defaults from the schema, meanings from the text below each field in the source. ``{TraceWorkload - SenderSection}`` is
the table without the fields of the other section.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from simcore.scenario import parse_scenario
from simcore.scenario.sections import Scenario
from simcore.workload.config.section import Section

TEMPLATE = Path(__file__).with_suffix(".md")
_PLACE = re.compile(r"\{(\w+)(?: - (\w+))?\}")
_ONE_REQUEST = {
    "requests": 1,
    "arrivals": {"name": "at-once"},
    "prompt_tokens": {"name": "fixed", "tokens": 1},
    "output_tokens": {"name": "fixed", "tokens": 1},
}


def page() -> str:
    """The page; raises ``ValueError`` for a section that it leaves out, and for a field without a meaning."""
    known, shown = sections(), set()
    lines: list[str] = []
    for line in TEMPLATE.read_text(encoding="utf-8").splitlines():
        if place := _PLACE.fullmatch(line):
            shown |= {name for name in place.groups() if name is not None}
            lines += table(known[place[1]], {} if place[2] is None else known[place[2]].model_fields)
        else:
            lines.append(line)
    if left_out := {name for name, section in known.items() if fields(section)} - shown:
        raise ValueError(f"{TEMPLATE.name} leaves out {', '.join(sorted(left_out))}")
    return "\n".join(lines) + "\n"


def table(section: type[Section], apart: Any = ()) -> Iterator[str]:
    """The fields of a section but those of ``apart``, with defaults and meanings."""
    yield "| field | default | meaning |"
    yield "|---|---|---|"
    told = meanings(section)
    for name, field in fields(section).items():
        if name not in apart:
            yield f"| `{name}` | {default(section, name, field)} | {told[name]} |"


def sections() -> dict[str, type[Section]]:
    """Every section that a scenario may hold, and those that others derive from, by name."""
    found: dict[str, type[Section]] = {}
    todo: list[Any] = [Scenario]
    while todo:
        part = todo.pop()
        if isinstance(part, type) and issubclass(part, Section):
            if found.setdefault(part.__name__, part) is not part:
                raise ValueError(f"two sections are called {part.__name__}")
            if fields(part).keys() - meanings(part).keys():
                raise ValueError(f"no meaning of {part.__name__}.{min(fields(part).keys() - meanings(part).keys())}")
            todo += [field.annotation for field in part.model_fields.values()]
        else:
            todo += get_args(part)
    shared = {base.__name__: base for part in found.values() for base in part.__bases__ if base is not Section}
    return found | {name: base for name, base in shared.items() if not name.startswith("_")}


def fields(section: type[Section]) -> dict[str, FieldInfo]:
    """The fields that a user may set, all but the name that tells one kind of section from another."""
    return {name: field for name, field in section.model_fields.items() if name != "name" or field.annotation is str}


@cache
def meanings(section: type[BaseModel]) -> dict[str, str]:
    """What the source says below each field, those of the bases too."""
    found: dict[str, str] = {}
    for base in reversed(section.__mro__):
        if issubclass(base, Section) and base is not Section:
            [definition] = ast.parse(dedent(inspect.getsource(base))).body
            assert isinstance(definition, ast.ClassDef)
            for field, text in zip(definition.body, definition.body[1:], strict=False):
                match field, text:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                        found[name] = " ".join(inspect.cleandoc(said).replace("``", "`").split())
    return found


def default(section: type[Section], name: str, field: FieldInfo) -> str:
    """A cell: the default of a field, under the default engine where the preset states one."""
    if field.is_required():
        return "required"
    value = getattr(preset_sections().get(section, field), name, None) if section in preset_sections() else None
    if value is None:
        value = field.get_default(call_default_factory=True)
    if isinstance(value, Section):
        if "name" not in type(value).model_fields:
            return "see below"
        value = value.model_dump()
    elif isinstance(value, dict) and "name" in value:  # a policy
        value = value["name"]
    return "none" if value is None else f"`{_text(value)}`"


@cache
def preset_sections() -> dict[type, Any]:
    """The sections of a scenario that states nothing but what it must, by type."""
    scenario = parse_scenario(
        {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm"}, "workload": _ONE_REQUEST}
    )
    stated = [scenario.host, scenario.memory, scenario.scheduler]
    return {type(section): section for section in (*stated, scenario.scheduler.preemption)}


def _text(value: Any) -> str:
    """A value as a scenario would state it, on one line."""
    match value:
        case "":
            return '""'
        case bool():
            return str(value).lower()
        case float():
            return format(Decimal(repr(value)), "f")
        case dict():
            return f"{{{', '.join(f'{key}: {_text(inner)}' for key, inner in value.items())}}}"
        case _:
            return str(value)
