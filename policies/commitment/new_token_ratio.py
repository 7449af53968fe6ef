"""Set aside a share that shrinks while memory suffices."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from policies.bounds import check_counts, check_range
from policies.commitment import Commitment
from policies.views import CommittedView

_START = 0.7
_FLOOR_SHARE = 0.14
_STEPS_TO_FLOOR = 600


@dataclass(slots=True)
class NewTokenRatio(Commitment):
    """One ratio for all: it falls with each decode step, and rises to what was needed when memory runs short.

    It starts at 0.7 times ``conservativeness``, at most 1, and falls to 0.14 of that over 600 decode steps. After a
    retraction it is the share that the survivors would have generated after ``headroom_steps`` more steps. A request
    that ignores the end-of-sequence token has all of its tokens set aside.

    Source: SGLang's new-token ratio (python/sglang/srt/managers/scheduler_components/new_token_ratio_tracker.py).
    """

    conservativeness: float = 1.0
    headroom_steps: int = 20
    ratio: float = field(init=False)
    _start: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_range(self, 1e-6, 1e6, "conservativeness")
        check_counts(self, "headroom_steps", least=0)
        self._start = self.ratio = min(_START * self.conservativeness, 1.0)

    def share(self, request: CommittedView) -> float:
        """The ratio, or all of it."""
        return 1.0 if request.ignores_eos else self.ratio

    def decoded(self, steps: int) -> None:
        """Let the ratio fall, step by step."""
        floor = min(self._start * _FLOOR_SHARE, 1.0)
        fall = (self._start - floor) / _STEPS_TO_FLOOR
        for _ in range(steps):
            if self.ratio == floor:
                break
            self.ratio = max(self.ratio - fall, floor)

    def retracted(self, survivors: Iterable[CommittedView]) -> None:
        """Estimate the ratio anew."""
        left = list(survivors)
        generated = sum(request.generated_tokens for request in left)
        most = sum(request.max_output_tokens for request in left)
        self.ratio = min(1.0, (generated + self.headroom_steps * len(left)) / (most + 1))

    def idle(self) -> None:
        """Start again."""
        self.ratio = self._start
