"""How values of a YAML document are read, by whichever parser."""

import math
import re
from collections.abc import Hashable
from typing import Any

import yaml
from yaml.constructor import ConstructorError, SafeConstructor

_FLOAT = "tag:yaml.org,2002:float"
_INT = "tag:yaml.org,2002:int"
_MERGE = "tag:yaml.org,2002:merge"
_UNREAD = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")
_EXPONENT_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$")
_LARGEST_WHOLE = 2**63
_MOST_DIGITS = 4000
"""Of a number; Python itself does not read more than some thousand decimal ones."""
_LONGEST_VALUE = 40
"""Characters of a value that an error shows."""


class YamlRules(SafeConstructor):
    """PyYAML's safe loader keeps the last of two equal keys without a word and takes 1e3 for text.

    Here equal keys are an error, 1e3 is a number (whole, so that it can be a count), a date is plain text, what is no
    finite number is refused, and a value that cannot be built is an error with a place.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012  # the name and kind that PyYAML looks for
        first: [
            *([(_FLOAT, _EXPONENT_NUMBER)] if first in "-+.0123456789" else []),
            *((tag, pattern) for tag, pattern in resolvers if tag not in _UNREAD),
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping whose keys stand once each."""
        lines: dict[Hashable, int] = {}
        for key_node, _ in node.value:
            key: Any = self.construct_object(key_node, deep=True) if key_node.tag != _MERGE else None
            if key is None or not isinstance(key, Hashable):
                continue
            if key in lines:
                problem = f"the key {_shown(key)} stands twice, here and in line {lines[key]}"
                raise ConstructorError(None, None, problem, key_node.start_mark)
            lines[key] = key_node.start_mark.line + 1
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node; raises ``ConstructorError`` for whatever keeps it from being built."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, ArithmeticError) as error:
            problem = f"the value {_shown(str(node.value))} cannot be read"
            raise ConstructorError(None, None, problem, node.start_mark) from error

    def construct_whole(self, node: yaml.ScalarNode) -> int:
        """A whole number."""
        if len(node.value) > _MOST_DIGITS:
            raise ValueError(f"more than {_MOST_DIGITS} digits")
        return int(self.construct_yaml_int(node))

    def construct_float(self, node: yaml.ScalarNode) -> int | float:
        """A finite number; a whole one if it is written with an exponent and is one."""
        if len(node.value) > _MOST_DIGITS:
            raise ValueError(f"more than {_MOST_DIGITS} digits")
        number: float = self.construct_yaml_float(node)
        if not math.isfinite(number):
            raise ConstructorError(None, None, f"{_shown(node.value)} is no finite number", node.start_mark)
        whole = "e" in node.value.lower() and number.is_integer() and abs(number) < _LARGEST_WHOLE
        return int(number) if whole else number


def _shown(value: Hashable) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE + 2 else f"{text[: _LONGEST_VALUE + 1]}{text[0]}"


YamlRules.add_constructor(_FLOAT, YamlRules.construct_float)  # type: ignore[type-var]  # its stubs want a whole loader
YamlRules.add_constructor(_INT, YamlRules.construct_whole)  # type: ignore[type-var]  # its stubs want a whole loader
