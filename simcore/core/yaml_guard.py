"""Bounds on YAML that hold while it is parsed, before anything is built of it."""

from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.constructor import ConstructorError
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent

MOST_LEVELS = 50
"""Mappings and lists within each other."""
MOST_VALUES = 1_000_000
"""Values in all, those that an alias repeats counted as often as it stands."""


def check_bounds(text: str, loader: Any) -> None:
    """Raise ``yaml.YAMLError`` for a text with tags, with aliases to what holds them, or too deep or too large.

    Work is in proportion to the text, however much its aliases stand for.
    """
    count = _Count()
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, NodeEvent):
            count.node(event)
        elif isinstance(event, CollectionEndEvent):
            count.end()


@dataclass(slots=True)
class _Count:
    """The values of each anchor, and of the collections that are not yet closed."""

    anchored: dict[str, int] = field(default_factory=dict)
    open: list[tuple[str | None, int]] = field(default_factory=list)
    total: int = 0

    def node(self, event: NodeEvent) -> None:
        if isinstance(event, AliasEvent):
            self._add(self._aliased(event), event)
            return
        tag: str | None = getattr(event, "tag", None)
        if tag is not None:
            raise _refusal(f"the tag {tag[:40]!r} stands where a plain value must", event)
        if isinstance(event, CollectionStartEvent):
            if len(self.open) == MOST_LEVELS:
                raise _refusal(f"it is nested too deeply, beyond {MOST_LEVELS} levels", event)
            self.open.append((event.anchor, 0))
        elif event.anchor is not None:
            self.anchored[event.anchor] = 1
        self._add(1, event)

    def end(self) -> None:
        anchor, values = self.open.pop()
        if anchor is not None:
            self.anchored[anchor] = values
        if self.open:
            outer, before = self.open[-1]
            self.open[-1] = (outer, before + values)

    def _aliased(self, event: AliasEvent) -> int:
        name = str(event.anchor)
        if any(anchor == name for anchor, _ in self.open):
            raise _refusal(f"{name[:40]!r} stands for a value that would hold itself", event)
        return self.anchored.get(name, 1)  # one that is not there at all is told when it is looked for

    def _add(self, values: int, event: NodeEvent) -> None:
        if self.open:
            anchor, before = self.open[-1]
            self.open[-1] = (anchor, before + values)
        self.total += values
        if self.total > MOST_VALUES:
            raise _refusal(f"it is too large, with more than {MOST_VALUES:,} values", event)


def _refusal(problem: str, event: Any) -> ConstructorError:
    return ConstructorError(None, None, problem, event.start_mark)
