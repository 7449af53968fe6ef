"""Class first, then another ordering."""

from dataclasses import dataclass, field
from typing import ClassVar

from policies.ordering import CacheAwareOrdering, GroupOrdering, Ordering
from policies.ordering.fcfs import FirstComeFirstServed
from policies.prediction import LengthPredictor
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class TwoLevel(Ordering):
    """Serve by level of priority, and within a level by any ordering that sorts by a key.

    Nobody who runs is displaced, even where the inner ordering alone would.

    Source: vLLM's policy priority, whose inner ordering is fcfs.
    """

    hears_admitted: ClassVar[bool] = True
    hears_ended: ClassVar[bool] = True
    inner: Ordering = field(default_factory=FirstComeFirstServed)

    def __post_init__(self) -> None:
        if isinstance(self.inner, GroupOrdering | CacheAwareOrdering):
            raise ValueError(f"inner is a {type(self.inner).__name__}, expected an ordering that sorts by a key alone")

    @property
    def stable_steps(self) -> int:  # type: ignore[override]
        """As long as the inner ordering stands."""
        return self.inner.stable_steps

    @property
    def requeues_last(self) -> bool:  # type: ignore[override]
        """As in the inner ordering."""
        return self.inner.requeues_last

    @property
    def changes_with_time(self) -> bool:  # type: ignore[override]
        """If the inner key does."""
        return self.inner.changes_with_time

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The level, then the inner key."""
        return (request.priority, *self.inner.key(request, now_s))

    def admitted(self, request: RequestView, now_s: float) -> None:
        """Pass it on."""
        self.inner.admitted(request, now_s)

    def ended(self, request: RequestView) -> None:
        """Pass it on."""
        self.inner.ended(request)

    @property
    def promotes_after_s(self) -> float | None:
        """As the inner ordering does."""
        return self.inner.promotes_after_s

    def promoted(self, request: RequestView) -> None:
        """Pass it on."""
        self.inner.promoted(request)

    @property
    def predictors(self) -> tuple[LengthPredictor, ...]:
        """Those of the inner ordering."""
        return self.inner.predictors
