"""A queue in front of all replicas, for requests that find none with room."""

from collections.abc import Callable
from dataclasses import dataclass, field

from simcore.core.request import Request
from simcore.recording.recorder import Recorder
from simcore.service.clock import Clock
from simcore.service.resending import NOWHERE
from simcore.service.stage import Stage

FULL = "full"


@dataclass(slots=True)
class GatewayQueue:
    """Keeps replicas closed that have ``most_open`` requests, and holds the others, first come, first served.

    When a replica of the stage has room again, the first of them goes on, and all do when there is nobody to wait for.
    """

    clock: Clock
    stage: Stage
    recorder: Recorder
    most_open: int
    send: Callable[[Request, int], None] = lambda request, output_tokens: None
    on_dropped: Callable[[Request], None] = lambda request: None
    waited: int = 0
    _open: dict[int, int] = field(default_factory=dict)
    _inside: dict[int, tuple[Request, int]] = field(default_factory=dict)
    _looks: bool = False

    def takes(self, request: Request, output_tokens: int) -> bool:
        """Whether a request has to wait here, which then has begun."""
        if not self._inside and (self.stage.any_up or not any(self._open.values())):
            return False
        self.waited += 1
        self._inside[request.number] = request, output_tokens
        return True

    def sent(self, request: Request, place: int) -> None:
        """A replica with enough requests gets no more."""
        self._open[place] = self._open.get(place, 0) + 1
        if self._open[place] == self.most_open:
            self.stage.close(place, FULL)

    def ended(self, request: Request, place: int) -> None:
        """There is room."""
        if self._open[place] == self.most_open:
            self.stage.open(place, FULL)
        self._open[place] -= 1
        self.look()

    def look(self) -> None:
        """Send on whom there may be room for, once all else has happened that happens now."""
        if self._inside and not self._looks:
            self._looks = True
            self.clock.call_at(self.clock.now_ns, self._send_on)

    def has(self, request: Request) -> bool:
        """Whether a request waits here."""
        return self._inside.get(request.number, (None,))[0] is request

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

    def _send_on(self) -> None:
        self._looks = False
        while self._inside and (self.stage.any_up or not any(self._open.values())):
            number = next(iter(self._inside))
            self.send(*self._inside.pop(number))
