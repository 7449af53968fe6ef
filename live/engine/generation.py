"""What a caller gets of a request: its outputs, token by token or when they are complete."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from queue import SimpleQueue

from live.engine.sequence import CallersSequence
from live.sampling.sampler import Sampled


@dataclass(frozen=True, slots=True)
class Piece:
    """One token of the output that is numbered ``branch``, and the text that it makes certain.

    ``finish_reason`` is empty but with the last: "stop" (an end token or a stop string) or "length".
    """

    branch: int
    token: int
    text: str
    logprob: float | None = None
    likeliest: tuple[tuple[int, float], ...] = ()
    finish_reason: str = ""


@dataclass(slots=True)
class Output:
    """One output so far; ``text`` is empty where there is no tokenizer.

    ``finish_reason`` is also "cancelled", or why the request was turned away.
    """

    tokens: list[int] = field(default_factory=list)
    text: str = ""
    logprobs: list[float] = field(default_factory=list)
    likeliest: list[tuple[tuple[int, float], ...]] = field(default_factory=list)
    finish_reason: str = ""
    cached_tokens: int = 0


Listener = Callable[["Piece | None"], None]


class Generation:
    """A request under way: iterate over its pieces (plainly or with ``async for``), or wait for its ``outputs``.

    Pieces are handed out once, to whoever iterates first.
    """

    def __init__(self, count: int, cancel: Callable[["Generation"], None]) -> None:
        self.outputs: list[Output] = [Output() for _ in range(count)]
        self.failure: BaseException | None = None
        self._open = count
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._early: list[Piece] = []
        self._listener: Listener | None = None
        self._cancel = cancel

    def cancel(self) -> None:
        """Withdraw the request; what it has is freed before the next step."""
        self._cancel(self)

    def wait(self, timeout_s: float | None = None) -> list[Output]:
        """All outputs, once they are complete; raises what ended the engine, or ``TimeoutError``."""
        if not self._over.wait(timeout_s):
            raise TimeoutError(f"the outputs were not complete after {timeout_s} s")
        if self.failure is not None:
            raise self.failure
        return self.outputs

    def __iter__(self) -> Iterator[Piece]:
        pieces: SimpleQueue[Piece | None] = SimpleQueue()
        self._listen(pieces.put)
        while (piece := pieces.get()) is not None:
            yield piece
        if self.failure is not None:
            raise self.failure

    async def __aiter__(self) -> AsyncIterator[Piece]:
        pieces: asyncio.Queue[Piece | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        self._listen(lambda piece: _unless_closed(loop, pieces, piece))
        while (piece := await pieces.get()) is not None:
            yield piece
        if self.failure is not None:
            raise self.failure

    def deliver(self, sequence: CallersSequence, sampled: Sampled, text: str) -> None:
        """Take in a token of one output."""
        output = self.outputs[sequence.branch]
        output.tokens.append(sampled.token)
        output.text += text
        if sampled.logprob is not None:
            output.logprobs.append(sampled.logprob)
            output.likeliest.append(sampled.likeliest)
        reason = sequence.finish_reason
        self._hand_out(Piece(sequence.branch, sampled.token, text, sampled.logprob, sampled.likeliest, reason))

    def end(self, branch: int, reason: str, cached_tokens: int = 0) -> None:
        """One output is over."""
        output = self.outputs[branch]
        if not output.finish_reason:
            output.finish_reason, output.cached_tokens = reason, cached_tokens
            self._open -= 1
            if not self._open:
                self._close()

    def fail(self, error: BaseException) -> None:
        """The engine has ended."""
        self.failure = error
        self._close()

    def _close(self) -> None:
        self._over.set()
        with self._lock:
            if self._listener is not None:
                self._listener(None)

    def _hand_out(self, piece: Piece) -> None:
        with self._lock:
            if self._listener is None:
                self._early.append(piece)
            else:
                self._listener(piece)

    def _listen(self, listener: Listener) -> None:
        with self._lock:
            for piece in self._early:
                listener(piece)
            self._early.clear()
            self._listener = listener
            if self._over.is_set():
                listener(None)


def _unless_closed(loop: asyncio.AbstractEventLoop, pieces: "asyncio.Queue[Piece | None]", piece: Piece | None) -> None:
    """Hand a piece to another thread's loop, which its caller may have left."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(pieces.put_nowait, piece)
