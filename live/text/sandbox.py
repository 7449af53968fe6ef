"""A Jinja environment for programs that are not trusted: they change nothing, see nothing private, and stay small.

A short template can otherwise double a text until memory is full, so all that makes texts longer is bounded here.
"""

import functools
import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

LONGEST_TEXT = 10_000_000
"""Characters of any text in a template."""
_MOST_TURNS = 100_000
# Of texts, filters and methods that make nothing longer.
_FILTERS = (
    "abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items", "last", "length",
    "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse", "round", "safe", "select", "selectattr",
    "sort", "string", "title", "trim", "unique", "upper",
)  # fmt: skip
_TEXT_METHODS = (
    "capitalize", "count", "endswith", "find", "index", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit",
    "islower", "isnumeric", "isspace", "istitle", "isupper", "lower", "lstrip", "partition", "removeprefix",
    "removesuffix", "rfind", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip",
    "swapcase", "title", "upper",
)  # fmt: skip


class RefusedError(Exception):
    """What a template asks for by ``raise_exception``, or may not do."""


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with few filters and methods of texts, and with bounds on what they make."""

    intercepted_binops = frozenset(["*", "**", "+", "%"])

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        self._turns = 0
        self.filters = {name: run for name, run in self.filters.items() if name in _FILTERS}
        self.filters |= {"tojson": _to_json, "join": _joined, "replace": _replaced}
        self.globals.clear()
        self.globals |= {"range": self._range, "namespace": Namespace, "raise_exception": _refuse}

    def begin(self) -> None:
        """Count afresh, for another prompt."""
        self._turns = 0

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return _BoundedConcatenation().visit(super()._parse(source, name, filename))

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """What blocks and macros do with their output."""
        return _joined(parts)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Of texts, only methods that are harmless, or bounded here."""
        return self._of_text(obj, attribute) if isinstance(obj, str) else super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """As ``getattr`` where a name stands for a place."""
        by_name = isinstance(obj, str) and isinstance(argument, str)
        return self._of_text(obj, argument) if by_name else super().getitem(obj, argument)

    def _of_text(self, text: str, attribute: str) -> Any:
        if attribute == "replace":
            return functools.partial(_replaced, text)
        if attribute == "join":
            return functools.partial(_joined, separator=text)
        return getattr(text, attribute) if attribute in _TEXT_METHODS else self.undefined(obj=text, name=attribute)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Refuses powers and formatting, and texts and numbers that become too large."""
        if operator == "**" or (operator == "%" and not isinstance(left, int | float)):
            raise RefusedError(f"it uses {operator}")
        sizes = _length(left), _length(right)
        if operator == "*" and sizes[0] * sizes[1] > LONGEST_TEXT:
            raise RefusedError("it multiplies too much")
        if operator == "+" and hasattr(left, "__len__") and sum(sizes) > LONGEST_TEXT:
            raise RefusedError(f"a text is longer than {LONGEST_TEXT} characters")
        return super().call_binop(context, operator, left, right)

    def _range(self, *bounds: int) -> range:
        found = range(*bounds)
        self._turns += len(found)
        if self._turns > _MOST_TURNS:
            raise RefusedError(f"it counts further than {_MOST_TURNS}")
        return found


class _BoundedConcatenation(NodeTransformer):
    """Has ``a ~ b`` add texts, which is intercepted, instead of joining them."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        texts = [nodes.Filter(part, "string", [], [], None, None, lineno=node.lineno) for part in node.nodes]
        total: nodes.Expr = texts[0]
        for text in texts[1:]:
            total = nodes.Add(total, text, lineno=node.lineno)
        return total


def _length(value: Any) -> int:
    if hasattr(value, "__len__"):
        return max(1, len(value))
    return max(1, abs(int(value))) if isinstance(value, int | float) else 1


def _joined(parts: Iterable[Any], separator: str = "") -> str:
    texts = [str(part) for part in parts]
    if sum(map(len, texts)) + len(separator) * len(texts) > LONGEST_TEXT:
        raise RefusedError(f"a text is longer than {LONGEST_TEXT} characters")
    return str(separator).join(texts)


def _replaced(text: str, old: str, new: str, count: int = -1) -> str:
    text, old, new = str(text), str(old), str(new)
    if len(text) + text.count(old) * len(new) > LONGEST_TEXT:
        raise RefusedError(f"a text is longer than {LONGEST_TEXT} characters")
    return text.replace(old, new, -1 if count is None else count)


def _refuse(message: object) -> NoReturn:
    raise RefusedError(str(message)[:200])


def _to_json(value: Any, indent: int | None = None, ensure_ascii: bool = False, **_: Any) -> str:
    """As transformers does: Jinja's own would escape for HTML."""
    if indent is not None and not 0 <= indent <= 16:
        raise RefusedError(f"it indents by {indent}")
    plain = dict(value) if isinstance(value, Mapping) else value
    return json.dumps(plain, ensure_ascii=ensure_ascii, indent=indent)
