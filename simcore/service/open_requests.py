"""The requests that a replica has taken in and that are not over, and who is told when one is."""

from collections.abc import Callable

from policies.batching import Batching
from simcore.core.clock import Clock, to_s
from simcore.core.request import Request
from simcore.recording.gap_tracker import GapTracker
from simcore.recording.recorder import Recorder
from simcore.recording.step_rows import StepRows
from simcore.scheduling.scheduler import Scheduler
from simcore.service.executor import SimulatedExecutor

GAVE_WAY = "gave way when KV memory ran short"


class OpenRequests:
    """Follows each request of a replica to its end, and tells all who keep books of requests.

    A request ends when it is complete, when it gives way for good, or when its client gives up. In the last case
    everybody outside hears of it at once, but the scheduler has it until the step in progress is done.
    """

    __slots__ = (
        "_batching_learns",
        "_clock",
        "_executor",
        "_index",
        "_on_drop",
        "_on_finish",
        "_predictors",
        "_recorder",
        "_rows",
        "_scheduler",
        "_seeing_predictors",
        "_shared_with",
        "_tokens",
        "by_number",
        "given_up",
    )

    def __init__(
        self,
        clock: Clock,
        index: int,
        scheduler: Scheduler,
        executor: SimulatedExecutor,
        recorder: Recorder,
        rows: StepRows,
        tokens: GapTracker,
    ) -> None:
        self.by_number: dict[int, Request] = {}
        self.given_up: list[Request] = []
        """Those whose clients gave up, and which the scheduler still has."""
        self._on_finish: Callable[[Request], None] | None = None
        self._on_drop: Callable[[Request], None] | None = None
        self._shared_with: list[OpenRequests] = []
        self._clock = clock
        self._index = index
        self._scheduler = scheduler
        self._executor = executor
        self._recorder = recorder
        self._rows = rows
        self._tokens = tokens
        self._predictors = scheduler.predictors
        self._seeing_predictors = tuple(predictor for predictor in scheduler.predictors if predictor.sees_truth)
        self._batching_learns = type(scheduler.batching).finished is not Batching.finished

    def share(self, first: "OpenRequests") -> None:
        """Follow the same requests as another batch of the replica, each to its end in the batch that has it."""
        self.by_number = first.by_number
        self._executor.share(first._executor)
        first._shared_with.append(self)

    def tell(self, on_finish: Callable[[Request], None], on_drop: Callable[[Request], None]) -> None:
        """Call one of these with each request that ends, complete or not, in whichever batch of the replica."""
        for batch in (self, *self._shared_with):
            batch._on_finish, batch._on_drop = on_finish, on_drop

    def accept(self, request: Request, output_tokens: int) -> None:
        """Follow a request that just arrived; it will generate ``output_tokens``."""
        self._executor.expect(request, output_tokens)
        for predictor in self._seeing_predictors:
            predictor.reveal(request, output_tokens)
        self.by_number[request.number] = request

    def finish(self, request: Request, now_ns: int) -> None:
        """Free what a request holds that got its last token at ``now_ns``."""
        if request.number not in self.by_number:
            # Its client gave up during its last step.
            self.given_up.remove(request)
            self._scheduler.finish(request)
            self._forget(request)
            return
        output_tokens = self._executor.forget(request)
        self._scheduler.finish(request)
        for predictor in self._predictors:
            predictor.finished(request, output_tokens)
        if self._batching_learns:
            self._tell_batching(request, now_ns, output_tokens)
        del self.by_number[request.number]
        self._rows.batch_changes()
        self._recorder.request_finished(request, self._index, now_ns, output_tokens)
        if self._on_finish is not None:
            self._on_finish(request)
        if request.done is not None:
            request.done.succeed()

    def drop(self, request: Request) -> None:
        """End a request that the scheduler has dropped."""
        self._forget(request)
        del self.by_number[request.number]
        self._reject(request, GAVE_WAY)

    def give_up(self, request: Request, reason: str) -> None:
        """End a request whose client gives up now; it is still to be aborted."""
        del self.by_number[request.number]
        self._reject(request, reason)
        self.given_up.append(request)

    def abort_given_up(self) -> None:
        """Free what those hold whose clients gave up during the step just done."""
        for request in self.given_up:
            self.abort(request)
        self.given_up.clear()

    def abort(self, request: Request) -> None:
        """Free what a request holds whose client gave up, wherever it is."""
        incoming = self._scheduler.incoming
        entry = next((entry for entry in incoming if entry[1] is request), None)
        if entry is None:
            self._scheduler.drop(request)
        else:
            incoming.remove(entry)
        self._forget(request)

    def close(self) -> None:
        """Hand to the recorder those that the end of the run cut off."""
        for request in self.by_number.values():
            self._recorder.request_unfinished(request, self._index)
        self.by_number.clear()  # batches of a pipeline share them

    def _forget(self, request: Request) -> None:
        """Take a request that will never be complete out of all books but those of the scheduler."""
        self._rows.batch_changes()
        self._tokens.dropped(request)
        output_tokens = self._executor.forget(request)
        for predictor in self._seeing_predictors:
            predictor.finished(request, output_tokens)

    def _reject(self, request: Request, reason: str) -> None:
        """Tell everybody that a request will never be complete."""
        self._recorder.request_rejected(request, self._index, self._clock.now_ns, reason)
        if self._on_drop is not None:
            self._on_drop(request)
        if request.done is not None:
            request.done.succeed(False)

    def _tell_batching(self, request: Request, now_ns: int, output_tokens: int) -> None:
        tpot_s = to_s(now_ns - request.first_token_ns) / (output_tokens - 1) if output_tokens > 1 else None
        self._scheduler.batching.finished(request, to_s(request.first_token_ns - request.arrival_ns), tpot_s)
