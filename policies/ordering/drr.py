"""Deficit round robin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from policies.bounds import check_counts
from policies.ordering import GroupOrdering
from policies.ordering.weights import check_weights
from policies.views import GroupView, RequestView


@dataclass(slots=True)
class DeficitRoundRobin(GroupOrdering):
    """Tenants take turns, each turn worth a quantum of tokens.

    Service is prompt and output tokens. Output is charged as it appears, since its length is not known before: a tenant
    may overdraw its quantum by its last request, and then sits out turns until it has paid. ``weights`` multiply the
    quantum.

    Source: Shreedhar and Varghese, SIGCOMM 1995.
    """

    hears_admitted: ClassVar[bool] = True
    keyed_by: ClassVar[Mapping[str, str]] = {"weights": "tenant"}
    quantum_tokens: int = 4096
    weights: Mapping[str, float] = field(default_factory=dict)
    _granted: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    _ring: list[str] = field(default_factory=list, init=False, repr=False)
    _turn: int = field(default=0, init=False, repr=False)
    _next: tuple[int, dict[str, float]] = field(default_factory=lambda: (0, {}), init=False, repr=False)

    def __post_init__(self) -> None:
        check_counts(self, "quantum_tokens")
        check_weights(self.weights)

    def activated(self, group: GroupView, others: Sequence[GroupView]) -> None:
        """Join the ring. What is left of a quantum is lost, as in the paper; what was overdrawn is still to be paid.

        Else a tenant that sends one request at a time would have each of them for a single quantum.
        """
        served = float(_served(group))
        if group.name not in self._granted:
            self._ring.append(group.name)
        self._granted[group.name] = min(self._granted.get(group.name, served), served)

    def choose(self, groups: Sequence[GroupView], now_s: float) -> GroupView:
        """The first tenant from the current turn on that has something left of its quanta."""
        waiting = {group.name: group for group in groups}
        turn, granted = self._turn, dict(self._granted)
        quanta = {name: self.quantum_tokens * self.weights.get(name, 1.0) for name in waiting}
        rounds = min((_served(group) - granted[name]) // quanta[name] for name, group in waiting.items())
        if rounds > 1:  # whole rounds in which nobody would have anything left
            for name, quantum in quanta.items():
                granted[name] += (rounds - 1) * quantum
        while True:
            name = self._ring[turn]
            if name in waiting and granted[name] > _served(waiting[name]):
                self._next = (turn, granted)
                return waiting[name]
            turn = (turn + 1) % len(self._ring)
            following = self._ring[turn]
            if following in waiting:
                granted[following] += quanta[following]

    def admitted(self, request: RequestView, now_s: float) -> None:
        """Keep the turn and the quanta granted on the way to it."""
        self._turn, self._granted = self._next


def _served(group: GroupView) -> int:
    return group.prompt_tokens_served + group.output_tokens_served
