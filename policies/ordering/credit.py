"""Credits per tenant and window."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from policies.bounds import MOST_AMOUNT, check_amounts, check_seconds, check_value
from policies.ordering import GroupOrdering
from policies.prediction import LengthPredictor
from policies.prediction.moving_average import MovingAverage
from policies.views import GroupView, RequestView


@dataclass(slots=True)
class Credit(GroupOrdering):
    """Each tenant has a credit of tokens per window of time; those with credit left go first, by arrival.

    An admitted request spends its prompt and its predicted output. A tenant that has spent its credit is served only
    while nobody with credit waits, so nothing is wasted. ``credits`` sets single tenants apart from
    ``tokens_per_window``.

    Source: own.
    """

    hears_admitted: ClassVar[bool] = True
    keyed_by: ClassVar[Mapping[str, str]] = {"credits": "tenant"}
    tokens_per_window: float = 100_000.0
    window_s: float = 60.0
    credits: Mapping[str, float] = field(default_factory=dict)
    predictor: LengthPredictor = field(default_factory=MovingAverage)
    _spent: dict[str, tuple[int, float]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_amounts(self, "tokens_per_window")
        check_seconds(self, "window_s")
        for tenant, credit in self.credits.items():
            check_value(f"credits.{tenant}", credit, 0.0, MOST_AMOUNT)

    def choose(self, groups: Sequence[GroupView], now_s: float) -> GroupView:
        """The tenant with the oldest request among those with credit left, or among all."""
        solvent = [group for group in groups if self._left(group.name, now_s) > 0]
        return min(solvent or groups, key=lambda group: (group.first.arrival_s, group.first.number))

    def admitted(self, request: RequestView, now_s: float) -> None:
        """Spend."""
        window = int(now_s // self.window_s)
        since, spent = self._spent.get(request.tenant, (window, 0.0))
        cost = request.prompt_tokens + self.predictor.output_tokens(request)
        self._spent[request.tenant] = (window, cost + (spent if since == window else 0.0))

    @property
    def predictors(self) -> tuple[LengthPredictor, ...]:
        """The one that it asks."""
        return (self.predictor,)

    def _left(self, tenant: str, now_s: float) -> float:
        since, spent = self._spent.get(tenant, (0, 0.0))
        credit = self.credits.get(tenant, self.tokens_per_window)
        return credit - spent if since == int(now_s // self.window_s) else credit
