"""What a scheduler decided, step by step, to be held against what another did."""

from typing import NamedTuple

from simcore.core.batch_plan import BatchPlan


class PlannedStep(NamedTuple):
    """One plan; requests are told by their numbers, ``chunks`` with their tokens and those computed before."""

    start_ns: int
    decoding: int
    chunks: tuple[tuple[int, int, int], ...]
    stalled: tuple[int, ...]
    preempted: tuple[int, ...]
    swapped_out: tuple[int, ...]
    swapped_in: tuple[int, ...]
    dropped: tuple[int, ...]

    @classmethod
    def of(cls, plan: BatchPlan, start_ns: int) -> "PlannedStep":
        """What a plan made at ``start_ns`` decides."""
        left = (plan.stalled, plan.preempted, plan.swapped_out, plan.swapped_in, plan.dropped)
        return cls(
            start_ns,
            plan.decoding,
            tuple((chunk.request.number, chunk.tokens, chunk.computed_tokens) for chunk in plan.chunks),
            *(tuple(request.number for request in requests) for requests in left),
        )

    @property
    def idle(self) -> bool:
        """Whether it decides nothing."""
        return not any(self[1:])
