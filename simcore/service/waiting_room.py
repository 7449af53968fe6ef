"""Where requests wait while no replica is up but some are on their way."""

from collections.abc import Callable
from dataclasses import dataclass, field

from simcore.core.request import Request
from simcore.recording.recorder import Recorder
from simcore.service.clock import Clock
from simcore.service.resending import NOWHERE


@dataclass(slots=True)
class WaitingRoom:
    """Holds requests, in the order in which they came, until a replica serves or their clients give up."""

    clock: Clock
    recorder: Recorder
    on_dropped: Callable[[Request], None] = lambda request: None
    _inside: dict[int, tuple[Request, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._inside)

    def enter(self, request: Request, output_tokens: int) -> None:
        """Take in a request that would generate so much."""
        self._inside[request.number] = request, output_tokens

    def leave(self) -> list[tuple[Request, int]]:
        """Let all go; returns them."""
        found = list(self._inside.values())
        self._inside.clear()
        return found

    def has(self, request: Request) -> bool:
        """Whether a request waits here."""
        return request.number in self._inside

    def give_up(self, request: Request, reason: str) -> None:
        """End a request whose client gives up now."""
        del self._inside[request.number]
        self.recorder.request_rejected(request, NOWHERE, self.clock.now_ns, reason)
        self.on_dropped(request)
        if request.done is not None:
            request.done(False)

    def close(self) -> None:
        """Hand to the recorder those that the end of the run cut off."""
        for request, _ in self._inside.values():
            self.recorder.request_unfinished(request, NOWHERE)
