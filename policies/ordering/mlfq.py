"""Skip-join multi-level feedback queue."""

from dataclasses import dataclass
from typing import ClassVar

from policies.ordering import Ordering
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class MultiLevelFeedbackQueue(Ordering):
    """Serve young requests first: a request sinks a level each time that it has used up its level's quantum of tokens.

    Skip-join as in FastServe (Wu et al., 2023): a request enters at the level whose quantum covers its first step, the
    prefill, rather than at the top, a prompt token counting ``prompt_weight`` of an output token. Quanta grow by
    ``growth`` per level.
    """

    preemptive: ClassVar[bool] = True
    levels: int = 6
    quantum_tokens: int = 16
    growth: float = 2.0
    prompt_weight: float = 0.02

    def __post_init__(self) -> None:
        for name, least in (("levels", 1), ("quantum_tokens", 1), ("growth", 1.0), ("prompt_weight", 0.0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}, expected a number of at least {least}")

    @property
    def stable_steps(self) -> int:  # type: ignore[override]
        """One step, since any token may take a request to the next level."""
        return 1

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The level, then the arrival."""
        return self.level(request), request.arrival_s

    def level(self, request: RequestView) -> int:
        """The level that the request has sunk to."""
        level, quantum = 0, float(self.quantum_tokens)
        while level < self.levels - 1 and quantum < self.prompt_weight * request.prompt_tokens:
            level, quantum = level + 1, quantum * self.growth
        used = float(request.generated_tokens)
        while level < self.levels - 1 and used >= quantum:
            used -= quantum
            level, quantum = level + 1, quantum * self.growth
        return level
