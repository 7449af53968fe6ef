"""The requests that a replica has taken in and that are not over, and who is told when one is."""

from collections.abc import Callable

from simcore.core.request import ReadOnlyRequest, Request
from simcore.recording.recorder import Recorder
from simcore.recording.step_log import StepLog
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.step import Ends
from simcore.service.clock import Clock

GAVE_WAY = "gave way when KV memory ran short"


class OpenRequests:
    """Follows each request of a replica to its end, and tells all who keep books of requests.

    A request ends when it is complete, when it gives way for good, or when its client gives up. In the last case
    everybody outside hears of it at once, but the scheduler has it until the step in progress is done.
    """

    __slots__ = (
        "_clock",
        "_ends",
        "_index",
        "_log",
        "_on_drop",
        "_on_finish",
        "_recorder",
        "_scheduler",
        "_seeing_predictors",
        "_shared_with",
        "by_number",
        "on_prefilled",
    )

    def __init__(
        self,
        clock: Clock,
        index: int,
        scheduler: Scheduler,
        ends: Ends,
        recorder: Recorder,
        log: StepLog,
    ) -> None:
        self.by_number: dict[int, Request] = {}
        self._on_finish: Callable[[Request], None] | None = None
        self._on_drop: Callable[[Request], None] | None = None
        self.on_prefilled: Callable[[Request, bool], bool] | None = None
        """Told of each request that is complete here, and whether it is open; returns whether it goes on elsewhere."""
        self._shared_with: list[OpenRequests] = []
        self._clock = clock
        self._index = index
        self._scheduler = scheduler
        self._ends = ends
        self._recorder = recorder
        self._log = log
        self._seeing_predictors = tuple(each for each in scheduler.config.predictors if each.sees_truth)

    def share(self, first: "OpenRequests") -> None:
        """Follow the same requests as another batch of the replica, each to its end in the batch that has it."""
        self.by_number = first.by_number
        self._ends.share(first._ends)
        first._shared_with.append(self)

    def tell(self, on_finish: Callable[[Request], None], on_drop: Callable[[Request], None]) -> None:
        """Call one of these with each request that ends, complete or not, in whichever batch of the replica."""
        for batch in (self, *self._shared_with):
            batch._on_finish, batch._on_drop = on_finish, on_drop

    def accept(self, request: Request, output_tokens: int) -> None:
        """Follow a request that just arrived; it will generate ``output_tokens``."""
        self._ends.expect(request, output_tokens)
        for predictor in self._seeing_predictors:
            predictor.reveal(ReadOnlyRequest(request), output_tokens)
        self.by_number[request.number] = request

    def finish(self, request: Request, now_ns: int) -> None:
        """End a request that got its last token at ``now_ns``."""
        is_open = request.number in self.by_number
        goes_on = self.on_prefilled is not None and self.on_prefilled(request, is_open)
        if not is_open:
            self.forget(request)  # its client gave up during its last step
            return
        if goes_on:
            self.forget(request)
            del self.by_number[request.number]
            return
        output_tokens = self._ends.forget(request)
        del self.by_number[request.number]
        self._log.rows.batch_changes()
        self._recorder.request_finished(request, self._index, now_ns, output_tokens)
        if self._on_finish is not None:
            self._on_finish(request)
        if request.done is not None:
            request.done(True)

    def drop(self, request: Request) -> None:
        """End a request that the scheduler has dropped."""
        self.forget(request)
        del self.by_number[request.number]
        self._reject(request, GAVE_WAY)

    def give_up(self, request: Request, reason: str | None) -> None:
        """End a request whose client gives up now, or without a word one that goes on elsewhere (no ``reason``).

        The scheduler still has it.
        """
        del self.by_number[request.number]
        if reason is not None:
            self._reject(request, reason)

    def forget(self, request: Request) -> int:
        """Take a request that will not be complete here out of all books but those of the scheduler, which had it last.

        Returns its true output length.
        """
        self._log.left(request)
        output_tokens = self._ends.forget(request)
        for predictor in self._seeing_predictors:
            predictor.finished(ReadOnlyRequest(request), output_tokens)
        return output_tokens

    def leave(self, request: Request) -> int:
        """Let a request go on elsewhere that the scheduler has dropped; returns its true output length."""
        output_tokens = self.forget(request)
        del self.by_number[request.number]
        return output_tokens

    def close(self) -> None:
        """Hand to the recorder those that the end of the run cut off."""
        for request in self.by_number.values():
            self._recorder.request_unfinished(request, self._index)
        self.by_number.clear()  # batches of a pipeline share them

    def _reject(self, request: Request, reason: str) -> None:
        """Tell everybody that a request will never be complete."""
        self._recorder.request_rejected(request, self._index, self._clock.now_ns, reason)
        if self._on_drop is not None:
            self._on_drop(request)
        if request.done is not None:
            request.done(False)
