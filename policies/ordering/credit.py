"""Credits per tenant and window."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policies.ordering import GroupOrdering
from policies.views import GroupView


@dataclass(slots=True)
class Credit(GroupOrdering):
    """Each tenant has a credit of tokens per window of time; those with credit left go first, by arrival.

    A tenant that has used its credit up is served only while nobody with credit waits, so nothing is wasted.
    ``credits`` sets single tenants apart from ``tokens_per_window``.
    """

    tokens_per_window: float = 100_000.0
    window_s: float = 60.0
    credits: Mapping[str, float] = field(default_factory=dict)
    _window: int = field(default=0, init=False, repr=False)
    _served_before: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    _seen: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("tokens_per_window", "window_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}, expected a number greater than 0")

    def choose(self, groups: Sequence[GroupView], now_s: float) -> GroupView:
        """The tenant with the oldest request among those with credit left, or among all."""
        window = int(now_s // self.window_s)
        if window != self._window:
            self._window = window
            self._served_before |= self._seen
        for group in groups:
            self._seen[group.name] = group.prompt_tokens_served + group.output_tokens_served
            self._served_before.setdefault(group.name, 0)
        solvent = [group for group in groups if self._left(group) > 0]
        return min(solvent or groups, key=lambda group: (group.first.arrival_s, group.first.number))

    def _left(self, group: GroupView) -> float:
        spent = self._seen[group.name] - self._served_before[group.name]
        return self.credits.get(group.name, self.tokens_per_window) - spent
