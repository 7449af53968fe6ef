"""Requests that another replica has computed so far: room is made for them, their KV comes, and they decode on."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from simcore.core.request import ReadOnlyRequest, Request
from simcore.scheduling.room import watermark
from simcore.scheduling.state import SchedulerState


class Arrival(NamedTuple):
    """A request on its way, and for how many tokens of it blocks are, or are to be, set aside."""

    request: Request
    tokens: int


class Arriving:
    """Requests on their way to one scheduler, which takes note of them between two steps.

    ``wanting`` have asked for room, in their order, with who is told when they have it. ``under_way`` hold the blocks
    set aside for them, ``ready`` have all of their KV and decode from the next step on. Nobody gets room while somebody
    waits here who was preempted, and no more do than there are slots.
    """

    __slots__ = ("_incoming", "_state", "ready", "under_way", "wanting")

    def __init__(self, state: SchedulerState) -> None:
        self._state = state
        self._incoming: deque[tuple[int, Callable[[], object]]] = deque()
        self.wanting: deque[tuple[Arrival, Callable[[], None]]] = deque()
        self.under_way: dict[int, Arrival] = {}
        self.ready: deque[Request] = deque()

    @property
    def unseen(self) -> bool:
        """Whether anything happened of which the scheduler has not taken note."""
        return bool(self._incoming)

    @property
    def held_tokens(self) -> Iterator[tuple[Request, int]]:
        """All who hold blocks, each with the tokens it has blocks for."""
        yield from self.under_way.values()

    def ask_for_room(self, request: Request, tokens: int, now_ns: int, on_room: Callable[[], None]) -> None:
        """Have blocks set aside for so many tokens of a request as soon as there is room."""
        self.then(now_ns, partial(self.wanting.append, (Arrival(request, tokens), on_room)))

    def then(self, now_ns: int, action: Callable[[], object]) -> None:
        """Have something done between two steps, in its turn."""
        self._incoming.append((now_ns, action))

    def landed(self, request: Request, now_ns: int) -> None:
        """All keys and values of a request have come."""
        self.then(now_ns, partial(self._ready, request))

    def withdraw(self, request: Request, now_ns: int) -> None:
        """A request will not come: what is set aside for it becomes free."""
        self.then(now_ns, partial(self.abandon, request))

    def see(self, until_ns: int) -> None:
        """Take note of what happened until then."""
        while self._incoming and self._incoming[0][0] <= until_ns:
            self._incoming.popleft()[1]()

    def _ready(self, request: Request) -> None:
        if request.number in self.under_way:  # else it was abandoned since
            self.ready.append(request)

    def join(self) -> list[Request]:
        """Let those decode on who are ready; returns them."""
        joined = []
        while self.ready:
            request = self.ready.popleft()
            arrival = self.under_way.pop(request.number)
            if arrival.tokens != request.computed_tokens:
                _release(self._state, arrival, computed=False)
                self._state.memory.restore(request, 0)
            ordering = self._state.config.ordering
            if ordering.hears_admitted:
                ordering.admitted(ReadOnlyRequest(request), self._state.now_s)
            self._state.resume(request, decoding=True)
            joined.append(request)
        return joined

    def give_room(self, slots: int) -> None:
        """Set blocks aside for as many as there is room for."""
        state, memory = self._state, self._state.memory
        while self.wanting and not state.waiting.size and not state.some_are_away():
            arrival, on_room = self.wanting[0]
            required = memory.blocks_for(arrival.tokens + 1) + watermark(state)
            if len(state.running) + len(self.under_way) >= slots or not memory.can_hold(arrival.request, required):
                return
            self.wanting.popleft()
            _set_aside(state, arrival)
            self.under_way[arrival.request.number] = arrival
            on_room()

    def abandon(self, request: Request) -> bool:
        """Forget a request if it is here, and free what was set aside for it."""
        wanted = next((entry for entry in self.wanting if entry[0].request is request), None)
        if wanted is not None:
            self.wanting.remove(wanted)
        if request.number not in self.under_way:
            return False
        if request in self.ready:
            self.ready.remove(request)
        _release(self._state, self.under_way.pop(request.number), computed=False)
        return True


def _set_aside(state: SchedulerState, arrival: Arrival) -> None:
    """Give a request blocks that nobody finds in a cache before they are written."""
    request, tokens = arrival
    computed_tokens = request.computed_tokens
    request.computed_tokens = tokens if state.memory.releases else 0
    state.memory.restore(request, tokens - request.computed_tokens)
    request.computed_tokens = computed_tokens


def release_prompt(state: SchedulerState, request: Request) -> None:
    """Free the blocks of a computed prompt; others may find them afterwards."""
    _release(state, Arrival(request, request.prompt_tokens), computed=True)


def _release(state: SchedulerState, arrival: Arrival, computed: bool) -> None:
    request, tokens = arrival
    before = request.computed_tokens
    request.computed_tokens, request.unknown_tokens = tokens, 0 if computed else tokens
    state.memory.release(request)
    request.computed_tokens, request.unknown_tokens = before, 0
