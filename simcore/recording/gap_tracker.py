"""Which gaps between tokens the steps of a replica make."""

from simcore.core.batch_plan import BatchPlan
from simcore.core.request import UNSET, Request
from simcore.core.token_gaps import StepDurations, TokenGaps


class GapTracker:
    """Follows when decoding requests got their last tokens, all at once where it was in the same step.

    ``last_token_ns`` is that time for most members of the decode pool; ``_laggards`` are those of which it is not
    true, because they sat a step out or joined while the others did, by the time of their last token. Gaps that end by
    ``since_ns`` are left out.
    """

    def __init__(self, since_ns: int) -> None:
        self.gaps = TokenGaps(since_ns)
        self.last_token_ns = 0
        self._laggards: dict[int, int] = {}

    def decoded(self, plan: BatchPlan, start_ns: int, durations_ns: StepDurations) -> None:
        """Count the gaps that end with the tokens of a plan's steps, the first of which began at ``start_ns``."""
        gaps, laggards, last_token_ns = self.gaps, self._laggards, self.last_token_ns
        if not laggards and not plan.stalled and last_token_ns == start_ns:
            gaps.add_steps(start_ns, durations_ns, plan.decoding)
            return
        first_end_ns = start_ns + int(durations_ns[0])
        stalled = {request.number for request in plan.stalled}
        caught_up = [number for number in laggards if number not in stalled]
        for number in caught_up:
            gaps.add(first_end_ns, first_end_ns - laggards.pop(number), 1)
        gaps.add(first_end_ns, first_end_ns - last_token_ns, plan.decoding - len(caught_up))
        for number in stalled:
            laggards.setdefault(number, last_token_ns)
        gaps.add_steps(first_end_ns, durations_ns[1:], plan.decoding)

    def prefilled(self, request: Request, now_ns: int) -> None:
        """Count the gap that ends with the token of a completed prefill, if it is not the first."""
        if request.lost_token_ns != UNSET:
            self.gaps.add(now_ns, now_ns - request.lost_token_ns, 1)
            request.lost_token_ns = UNSET

    def joined(self, request: Request, now_ns: int) -> None:
        """Follow a request that starts to decode in a step in which the other members got no token."""
        self._laggards[request.number] = now_ns

    def preempted(self, request: Request) -> None:
        """Remember when a preempted request got its last token, if it ever did."""
        last_token_ns = self._laggards.pop(request.number, self.last_token_ns)
        if request.known_output_tokens and request.lost_token_ns == UNSET:
            request.lost_token_ns = last_token_ns

    def returned(self, request: Request) -> None:
        """Follow a request again that decodes on where it was when it was preempted."""
        self._laggards[request.number] = request.lost_token_ns
        request.lost_token_ns = UNSET

    def dropped(self, request: Request) -> None:
        """Forget a request."""
        self._laggards.pop(request.number, None)
