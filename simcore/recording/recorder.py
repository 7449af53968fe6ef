"""Keeps what a run does, compactly: one row per request, one per run of like steps."""

from array import array
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simcore.core.request import UNSET, Request

FINISHED, REJECTED, UNFINISHED = range(3)
STATES = ("finished", "rejected", "unfinished")

REQUEST_FIELDS = (
    "number",
    "state",
    "reason",
    "replica",
    "prompt_tokens",
    "output_tokens",
    "arrival_ns",
    "first_scheduled_ns",
    "first_token_ns",
    "end_ns",
    "preemptions",
    "cached_tokens",
    "tenant",
    "priority",
)
STEP_FIELDS = (
    "replica",
    "start_ns",
    "end_ns",
    "first_step_ns",
    "last_step_ns",
    "steps",
    "prefill_tokens",
    "decoding_requests",
    "running_requests",
    "waiting_requests",
    "used_blocks",
    "used_blocks_at_end",
    "context_tokens",
    "preempted_requests",
)


class Recorder:
    """Rows of integers in flat arrays; times that never came are ``UNSET``."""

    def __init__(self) -> None:
        self._requests = array("q")
        self._steps = array("q")
        self.steps_run: Callable[[list[int]], None] = self._steps.fromlist
        """Keep consecutive steps of one batch, the fields in the order of ``STEP_FIELDS``."""
        self.reasons: list[str] = [""]
        self.tenants: dict[str, int] = {}

    def request_finished(self, request: Request, replica: int, end_ns: int, output_tokens: int) -> None:
        """Keep a request that got its last token at ``end_ns``."""
        self._requests.fromlist(
            [
                request.number,
                FINISHED,
                0,
                replica,
                request.prompt_tokens,
                output_tokens,
                request.arrival_ns,
                request.first_scheduled_ns,
                request.first_token_ns,
                end_ns,
                request.preemptions,
                request.cached_tokens,
                self.tenants.setdefault(request.tenant, len(self.tenants)),
                request.priority,
            ]
        )

    def request_rejected(self, request: Request, replica: int, now_ns: int, reason: str) -> None:
        """Keep a request that was turned away, dropped or given up, and why, with what it had got by then."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        counts = (request.prompt_tokens, request.generated_tokens)
        times = (request.arrival_ns, request.first_scheduled_ns, request.first_token_ns, now_ns)
        self._requests.extend((request.number, REJECTED, self.reasons.index(reason), replica, *counts, *times))
        more = (request.preemptions, request.cached_tokens, self._tenant(request), request.priority)
        self._requests.extend(more)

    def request_unfinished(self, request: Request, replica: int) -> None:
        """Keep a request that the end of the run cut off."""
        row = (request.number, UNFINISHED, 0, replica, request.prompt_tokens, request.generated_tokens)
        times = (request.arrival_ns, request.first_scheduled_ns, request.first_token_ns, UNSET)
        more = (request.preemptions, request.cached_tokens, self._tenant(request), request.priority)
        self._requests.extend((*row, *times, *more))

    def _tenant(self, request: Request) -> int:
        return self.tenants.setdefault(request.tenant, len(self.tenants))

    def first_tokens_after(self, since_ns: int) -> int:
        """How many requests got their first token later than that."""
        rows = np.frombuffer(self._requests, dtype=np.int64).reshape(-1, len(REQUEST_FIELDS))
        return int((rows[:, REQUEST_FIELDS.index("first_token_ns")] > since_ns).sum())

    def requests(self) -> dict[str, NDArray[np.int64]]:
        """Columns by ``REQUEST_FIELDS``, in order of arrival, then of number."""
        rows = np.frombuffer(self._requests, dtype=np.int64).reshape(-1, len(REQUEST_FIELDS))
        order = np.lexsort((rows[:, 0], rows[:, REQUEST_FIELDS.index("arrival_ns")]))
        return {name: rows[order, index] for index, name in enumerate(REQUEST_FIELDS)}

    def steps(self) -> dict[str, NDArray[np.int64]]:
        """Columns by ``STEP_FIELDS``, in order of start, then of replica."""
        rows = np.frombuffer(self._steps, dtype=np.int64).reshape(-1, len(STEP_FIELDS))
        order = np.lexsort((rows[:, 0], rows[:, 1]))
        return {name: rows[order, index] for index, name in enumerate(STEP_FIELDS)}
