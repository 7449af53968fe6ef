"""Service of groups since the start of the current window of time."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from policies.views import GroupView, RequestView


@dataclass(slots=True)
class RecentService:
    """Seconds of steps by windows of ``window_s``, so that what happened long ago gives no claim now and costs none.

    A window starts with the first admission in it: what running requests got between its edge and that is left out.
    What is admitted into a step gets its time only when that ends. So that it counts for those who are admitted after
    it into the same step, its prompt is charged beforehand, at the mean time of a token so far.
    """

    window_s: float
    _window: int = field(default=0, init=False, repr=False)
    _groups: dict[str, GroupView] = field(default_factory=dict, init=False, repr=False)
    _before_s: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    _admitted_at_s: float = field(default=-1.0, init=False, repr=False)
    _admitted_tokens: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    def of(self, groups: Sequence[GroupView], now_s: float) -> dict[str, float]:
        """What each group has got in this window."""
        if self._index(now_s) != self._window:
            return {group.name: 0.0 for group in groups}
        served_s = {group.name: group.service_s - self._before_s.get(group.name, 0.0) for group in groups}
        if now_s == self._admitted_at_s:
            token_s = self._mean_token_s()
            for name, tokens in self._admitted_tokens.items():
                if name in served_s:
                    served_s[name] += tokens * token_s
        return served_s

    def activated(self, group: GroupView) -> None:
        """Follow a group."""
        self._groups[group.name] = group

    def admitted(self, group: str, request: RequestView, now_s: float) -> None:
        """Charge a request to its group, and start the window of now, if that is another."""
        window = self._index(now_s)
        if window != self._window:
            self._window = window
            self._before_s = {name: followed.service_s for name, followed in self._groups.items()}
        if now_s != self._admitted_at_s:
            self._admitted_at_s = now_s
            self._admitted_tokens = {}
        self._admitted_tokens[group] = self._admitted_tokens.get(group, 0) + request.prompt_tokens

    def _mean_token_s(self) -> float:
        """The mean over all steps; anything before the first, as shares are then of tokens alone."""
        groups = self._groups.values()
        service_s = sum(group.service_s for group in groups)
        tokens = sum(group.prompt_tokens_served + group.output_tokens_served for group in groups)
        return service_s / tokens if service_s > 0 else 1.0

    def _index(self, now_s: float) -> int:
        return int(now_s // self.window_s)
