"""Service of groups since the start of the current window of time."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from policies.views import GroupView


@dataclass(slots=True)
class RecentService:
    """Counts tokens by windows of ``window_s``, so that what happened long ago gives no claim now and costs none.

    A window starts with the first admission in it: what running requests got between its edge and that is left out.
    """

    window_s: float
    _window: int = field(default=0, init=False, repr=False)
    _groups: dict[str, GroupView] = field(default_factory=dict, init=False, repr=False)
    _before: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    def of(self, groups: Sequence[GroupView], now_s: float) -> dict[str, int]:
        """Prompt and output tokens of each group in this window."""
        if self._index(now_s) != self._window:
            return {group.name: 0 for group in groups}
        return {group.name: _served(group) - self._before.get(group.name, 0) for group in groups}

    def activated(self, group: GroupView) -> None:
        """Follow a group."""
        self._groups[group.name] = group

    def admitted(self, now_s: float) -> None:
        """Start the window of now, if that is another."""
        window = self._index(now_s)
        if window != self._window:
            self._window = window
            self._before = {name: _served(group) for name, group in self._groups.items()}

    def _index(self, now_s: float) -> int:
        return int(now_s // self.window_s)


def _served(group: GroupView) -> int:
    return group.prompt_tokens_served + group.output_tokens_served
