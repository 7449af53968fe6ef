"""YAML as a scenario is written in it: stricter than PyYAML where that is lenient, and with 1e3 as a number."""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from simcore.errors import FileError

_EXPONENT_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+")
_LARGEST_WHOLE = 2**63
_MERGE_TAG = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which keeps the last of two equal keys in silence and takes 1e3 for text.

    Here equal keys are an error, 1e3 is a number (whole, so that it can be a count too), a date is plain text, and a
    value that cannot be built is an error with a place.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        lines: dict[Hashable, int] = {}
        for key_node, _ in node.value:
            if key_node.tag == _MERGE_TAG:
                continue
            key: Any = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue  # which the parent class refuses
            line = key_node.start_mark.line + 1
            if key in lines:
                problem = f"the key {key!r} stands twice, here and in line {lines[key]}"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            lines[key] = line
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)  # type: ignore[no-untyped-call]
        except (ValueError, TypeError) as error:
            problem = f"{str(node.value)[:40]!r} is not what it is marked as, or beyond all bounds"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error

    def construct_exponent_number(self, node: yaml.ScalarNode) -> int | float:
        number = float(node.value)
        return int(number) if number.is_integer() and abs(number) < _LARGEST_WHOLE else number


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _first in "-+.0123456789":
    _Loader.yaml_implicit_resolvers.setdefault(_first, []).insert(
        0, ("!exponent-number", re.compile(_EXPONENT_NUMBER.pattern + "$"))
    )
_Loader.add_constructor("!exponent-number", _Loader.construct_exponent_number)


def parse_yaml(text: str) -> Any:
    """The one document in ``text``; raises ``yaml.YAMLError`` for whatever is wrong with it."""
    try:
        return yaml.load(text, _Loader)
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None


def read_yaml(path: Path) -> Any:
    """The document in the file at ``path``; raises ``FileError``, naming the line where one is to blame."""
    try:
        return parse_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(path, "no such file") from None
    except IsADirectoryError:
        raise FileError(path, "is a folder, expected a YAML file") from None
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror})") from error
    except UnicodeDecodeError:
        raise FileError(path, "is not UTF-8 text, expected a YAML file") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise FileError(path, f"not valid YAML: {told(error)}", line) from error
    except yaml.YAMLError as error:
        raise FileError(path, f"not valid YAML: {told(error)}") from error


def told(error: yaml.YAMLError) -> str:
    """What is wrong, in one line."""
    if isinstance(error, yaml.reader.ReaderError):
        return "it holds characters that no text has"
    if isinstance(error, yaml.MarkedYAMLError):
        doing = f" {error.context}" if error.context and error.context.startswith("while") else ""
        return f"{error.problem}{doing}"
    return str(error)
