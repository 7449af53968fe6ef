"""YAML as scenarios are written in it: stricter than PyYAML where that is lenient, and with 1e3 as a number."""

import re
from collections.abc import Hashable
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError
from yaml.reader import ReaderError

from simcore.core.errors import FileError
from simcore.core.files import read_text

_FLOAT = "tag:yaml.org,2002:float"
_MERGE = "tag:yaml.org,2002:merge"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_EXPONENT_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$")
_LARGEST_WHOLE = 2**63
_LONGEST_VALUE = 40
"""Characters of a value that an error shows."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader keeps the last of two equal keys without a word and takes 1e3 for text.

    Here equal keys are an error, 1e3 is a number (whole, so that it can be a count), a date is plain text, and a value
    that cannot be built is an error with a place.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012  # the name and kind that PyYAML looks for
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        lines: dict[Hashable, int] = {}
        for key_node, _ in node.value:
            key: Any = self.construct_object(key_node, deep=True) if key_node.tag != _MERGE else None
            if key is None or not isinstance(key, Hashable):
                continue
            if key in lines:
                problem = f"the key {key!r} stands twice, here and in line {lines[key]}"
                raise ConstructorError(None, None, problem, key_node.start_mark)
            lines[key] = key_node.start_mark.line + 1
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError) as error:
            problem = f"the value {str(node.value)[:_LONGEST_VALUE]!r} cannot be read"
            raise ConstructorError(None, None, problem, node.start_mark) from error

    def construct_float(self, node: yaml.ScalarNode) -> int | float:
        number = self.construct_yaml_float(node)
        whole = "e" in node.value.lower() and number.is_integer() and abs(number) < _LARGEST_WHOLE
        return int(number) if whole else number


_Loader.add_implicit_resolver(_FLOAT, _EXPONENT_NUMBER, list("-+.0123456789"))
_Loader.add_constructor(_FLOAT, _Loader.construct_float)


def parse_yaml(text: str) -> Any:
    """The one document in ``text``; raises ``yaml.YAMLError`` for whatever is wrong with it."""
    try:
        return yaml.load(text, _Loader)
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None


def read_yaml(file: Path | Traversable, shown: str | None = None) -> Any:
    """The document in a file; raises ``FileError``, which calls it ``shown`` if given and names the line to blame."""
    text = read_text(file, "YAML file", shown)
    try:
        return parse_yaml(text)
    except yaml.YAMLError as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        line = mark.line + 1 if mark else None
        raise FileError(shown or str(file), f"not valid YAML: {yaml_problem(error)}", line) from error


def yaml_problem(error: yaml.YAMLError) -> str:
    """What is wrong, in one line and without the place."""
    if isinstance(error, ReaderError):
        return "it holds characters that no text has"
    if not isinstance(error, yaml.MarkedYAMLError):
        return str(error)
    problem, context = error.problem or "", error.context or ""
    if "'\\t'" in problem:
        return "a tab stands where only spaces may"
    return f"{problem} {context}".strip() if context.startswith("while") else f"{context} {problem}".strip()
