"""The step: what a scheduler and whoever executes its plans have to do with each other.

A loop around a scheduler has four stations, in simulation and on a real engine alike::

    plan = scheduler.plan(now_ns)                  # who runs, with how many tokens; blocks are allocated
    result = executor.execute(plan, now_ns)        # the tokens are computed, or priced; time passes
    ended = scheduler.commit(plan, result, now_ns) # progress is noted; who is complete gives its memory back
    ...                                            # recorders and clients are told

Scheduler, plan, memory and recorders know no clock: they are told what time it is. An executor knows no policy: it
gets a plan and says how long its steps took and whose output has ended, which nobody else can tell (by the true length
in a simulation, by a stop token or a client's limit on an engine). ``simcore.service.replica`` is the loop on SimPy's
virtual clock.

What an engine needs of a plan, before it computes: ``plan.copies``, ``copies_out`` and ``copies_in``, in this order;
``scheduler.scheduled(plan)`` for each request and its new tokens; ``scheduler.memory.block_table(request, new_tokens)``
for where they go. A plan that is ``empty`` runs nothing: ask again when a request arrives, or at ``plan.retry_ns``. A
request is withdrawn by ``scheduler.cancel``, at any time; it has what it holds until the next plan. For parallel
samples, ``scheduler.fork`` lets one request go on from another after a commit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from simcore.core.batch_plan import BatchPlan
from simcore.core.request import Request
from simcore.core.token_gaps import StepDurations


@dataclass(slots=True)
class StepResult:
    """What came of a plan: how long each step took that was run by it, and who has got its last token.

    More than one step only if the plan says that it stands for so many; ``ended`` are those that end with the last of
    them, in the order in which they were scheduled. Whose prompt a plan completes has got a token too.
    ``sampled_rows`` tokens were sampled in a step that did more than decode.
    """

    durations_ns: StepDurations
    ended: Sequence[Request] = ()
    sampled_rows: int = 0

    @property
    def elapsed_ns(self) -> int:
        """How long all steps took."""
        durations = self.durations_ns
        return sum(durations) if isinstance(durations, list) else int(durations.sum())

    def first(self, steps: int) -> "StepResult":
        """The first steps of several, with which nobody ends."""
        return StepResult(self.durations_ns[:steps], (), self.sampled_rows)

    def after(self, steps: int) -> "StepResult":
        """What is left after so many steps."""
        return StepResult(self.durations_ns[steps:], self.ended, self.sampled_rows)


class Ends(Protocol):
    """Who knows, of the requests that a replica has taken in, when their outputs end."""

    def share(self, other: Self) -> None:
        """Know the same requests as another, whose replica runs some of them."""

    def expect(self, request: Request, output_tokens: int) -> None:
        """Take note of a request that was just accepted; it generates no more than ``output_tokens``."""

    def forget(self, request: Request) -> int:
        """Drop a request that has ended; returns how many tokens it generated."""

    def follow(self, request: Request) -> None:
        """Take note of a request that has joined the decode pool, or was moved in it."""


class Executor(Protocol):
    """Whoever has the steps of a plan computed."""

    @property
    def ends(self) -> Ends:
        """The outputs under way."""

    @property
    def ready_ns(self) -> int:
        """When a step may begin at the earliest."""

    def execute(self, plan: BatchPlan, start_ns: int, within_ns: int) -> StepResult:
        """Execute a plan from ``start_ns`` on: one step, or as many alike as it stands for.

        With several, the one in progress when ``within_ns`` have passed is the last.
        """

    def resume(self, result: StepResult) -> None:
        """Take note that only the first steps of a result are executed, with which nobody ends."""

    def outlasts_arrivals(self, plan: BatchPlan) -> bool:
        """Whether the step after that in which a request comes is planned already."""


@dataclass(slots=True)
class Committed:
    """What a commit changed.

    ``finished`` are complete and hold nothing any more, ``prefilled`` got the token that a completed prompt yields, and
    of these ``decoding`` go on. ``used_blocks`` were held as decodes ended.
    """

    finished: Sequence[Request]
    prefilled: Sequence[Request]
    decoding: Sequence[Request]
    used_blocks: int
