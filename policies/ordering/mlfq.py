"""Skip-join multi-level feedback queue."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil
from typing import ClassVar

from policies.bounds import MOST_WEIGHT, check_counts, check_range, check_seconds
from policies.horizon import FOREVER
from policies.ordering import Ordering
from policies.views import RequestView

_NEVER = 2.0**62
"""More tokens than any request will have."""
_MOST_LEVELS = 64


@dataclass(slots=True)
class MultiLevelFeedbackQueue(Ordering):
    """Serve young requests first: a request sinks a level each time that it has used up its level's quantum of tokens.

    Skip-join: a request enters at the level whose quantum covers its first step, the prefill, rather than at the top, a
    prompt token counting ``prompt_weight`` of an output token. Quanta grow by ``growth`` per level. A request that has
    waited ``starvation_s`` at a stretch is promoted to the top level and sinks anew from there; None: never.

    Source: FastServe (Wu et al., 2023).
    """

    foresees_rises: ClassVar[bool] = True
    hears_ended: ClassVar[bool] = True
    preemptive: ClassVar[bool] = True
    levels: int = 6
    quantum_tokens: int = 16
    growth: float = 2.0
    prompt_weight: float = 0.02
    starvation_s: float | None = 30.0
    _quanta: tuple[int, ...] = field(init=False, repr=False)
    _ends: tuple[int, ...] = field(init=False, repr=False)
    _promoted_at: dict[int, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_range(self, 1, _MOST_LEVELS, "levels")
        check_counts(self, "quantum_tokens")
        check_range(self, 1.0, MOST_WEIGHT, "growth")
        check_range(self, 0.0, MOST_WEIGHT, "prompt_weight")
        check_seconds(self, "starvation_s")
        quantum, quanta = float(self.quantum_tokens), []
        for _ in range(self.levels - 1):
            quanta.append(ceil(min(quantum, _NEVER)))
            quantum *= self.growth
        self._quanta, self._ends = tuple(quanta), tuple(accumulate(quanta))

    @property
    def stable_steps(self) -> int:  # type: ignore[override]
        """One step, since any token may take a request to the next level."""
        return 1

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The level, then the arrival."""
        return bisect_right(self._ends, self._used(request)), request.arrival_s

    def level(self, request: RequestView) -> int:
        """The level that the request has sunk to."""
        return bisect_right(self._ends, self._used(request))

    def tokens_until_rise(self, request: RequestView) -> int:
        """What is left of the quantum."""
        used = self._used(request)
        level = bisect_right(self._ends, used)
        return self._ends[level] - used if level < len(self._ends) else FOREVER

    @property
    def promotes_after_s(self) -> float | None:
        """As stated."""
        return self.starvation_s

    def promoted(self, request: RequestView) -> None:
        """Let it begin anew at the top."""
        self._promoted_at[request.number] = request.generated_tokens

    def ended(self, request: RequestView) -> None:
        """Forget the request."""
        self._promoted_at.pop(request.number, None)

    def _used(self, request: RequestView) -> int:
        """Tokens used up as if the request had begun at the top, the quanta of levels that it skipped included."""
        promoted_at = self._promoted_at.get(request.number) if self._promoted_at else None
        if promoted_at is not None:
            return request.generated_tokens - promoted_at
        skipped = bisect_left(self._quanta, self.prompt_weight * request.prompt_tokens)
        return request.generated_tokens + (self._ends[skipped - 1] if skipped else 0)
