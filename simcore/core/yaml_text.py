"""YAML as scenarios, hardware, profiles and facts are written in it: stricter than PyYAML where that is lenient, with
1e3 as a number, and with bounds that hold before anything is built.
"""

from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError
from yaml.reader import ReaderError

from simcore.core.errors import FileError
from simcore.core.files import read_text
from simcore.core.yaml_guard import check_bounds
from simcore.core.yaml_rules import YamlRules

_LONGEST_PROBLEM = 200
"""Characters of a problem that an error shows; the parser puts names into it as they stand."""


class _Loader(YamlRules, yaml.SafeLoader):
    """The loader in Python, whose errors say what was expected."""


class _FastLoader(YamlRules, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The one in C, where PyYAML was built with it, which takes a tenth of the time."""


def parse_yaml(text: str) -> Any:
    """The one document in ``text``; raises ``yaml.YAMLError`` for whatever is wrong with it."""
    try:
        return _guarded(text, _FastLoader)
    except ConstructorError:
        raise
    except (yaml.YAMLError, UnicodeEncodeError):
        return _guarded(text, _Loader)  # for the words in which it refuses the text


def _guarded(text: str, loader: Any) -> Any:
    check_bounds(text, loader)
    return yaml.load(text, loader)


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
    whole = f"{problem} {context}" if context.startswith("while") else f"{context} {problem}"
    whole = whole.strip()
    return whole if len(whole) <= _LONGEST_PROBLEM else f"{whole[:_LONGEST_PROBLEM]}..."
