"""Sends the requests of sessions: the first as it arrives, each other one when those that it waits for have ended."""

from collections.abc import Callable, Generator, Iterator
from typing import Any

from simpy import Event

from simcore.service.api_server import ApiServer
from simcore.service.clock import Clock
from simcore.service.senders import Progress, arriving, as_sent
from simcore.service.service import Router
from simcore.workload.sessions import Sessions

_PROGRESS_EVERY = 1024
_GIVEN_UP = -1


class SessionSender:
    """Sends the requests of a workload of sessions, numbered by their places in it.

    A request that waits for one that was turned away, be it for another that does, is never sent; the session goes on
    with what does not wait for it.
    """

    def __init__(
        self, clock: Clock, workload: Sessions, api: ApiServer, router: Router, progress: Progress | None
    ) -> None:
        self._clock = clock
        self._api = api
        self._workload = workload
        self._router = router
        self._progress = progress
        follow_ups = workload.follow_ups
        # The views of arrays give single values as plain numbers, without a list of all.
        self._offsets, self._followers = follow_ups.offsets.data, follow_ups.followers.data
        self._arrival_ns = workload.requests.arrival_ns.data
        self._delay_ns, self._session = follow_ups.delay_ns.data, follow_ups.session.data
        self._waits_for = follow_ups.waits_for.copy().data
        self._sent = 0
        self._never_sent = 0
        self._users: dict[int, tuple[Event, int]] = {}

    @property
    def notices(self) -> tuple[str, ...]:
        """What a user should know of requests that were not sent."""
        if not self._never_sent:
            return ()
        return (f"{self._never_sent} requests of sessions were never sent, as one before them was turned away.",)

    def start(self) -> None:
        """Let sessions begin, as they arrive or by users each of whom is in one session at a time."""
        begins = self._workload.follow_ups.begins.tolist()
        if self._workload.concurrency is None:
            self._clock.process(self._arrivals(begins))
            return
        supply = iter(begins)
        for _ in range(min(self._workload.concurrency, len(begins))):
            self._clock.process(self._user(supply))

    def _arrivals(self, begins: list[int]) -> Generator[Event, Any, None]:
        clock, arrival_ns = self._clock, self._arrival_ns
        for place in begins:
            if arrival_ns[place] > clock.now_ns:
                yield clock.timeout(arrival_ns[place] - clock.now_ns)
            self._send(place)

    def _user(self, supply: Iterator[int]) -> Generator[Event, Any, None]:
        for place in supply:
            over = Event(self._clock)
            self._users[self._session[place]] = over, 1
            self._send(place)
            yield over
            if self._workload.pause_ns:
                yield self._clock.timeout(self._workload.pause_ns)

    def _send(self, place: int) -> None:
        requests = self._workload.requests
        (sent,) = as_sent(requests.at(slice(place, place + 1)))
        done = Event(self._clock)
        done.callbacks.append(self._when_ended(place))
        now_ns = self._clock.now_ns
        request = arriving(place, now_ns, sent, done.succeed)
        request.session = self._session[place]
        passes_ns = self._api.passes_ns(now_ns, request.prompt_tokens)
        if passes_ns > now_ns:
            timeout = self._clock.timeout(passes_ns - now_ns)
            timeout.callbacks.append(lambda _: self._router.receive(request, sent[1]))
        else:
            self._router.receive(request, sent[1])
        self._sent += 1
        if self._progress is not None and self._sent % _PROGRESS_EVERY == 0:
            self._progress(self._sent)

    def _when_ended(self, place: int) -> Callable[[Event], None]:
        def ended(done: Event) -> None:
            if done.value is False:
                self._give_up_those_after(place)
            else:
                self._send_those_after(place)
            self._one_less(place)

        return ended

    def _send_those_after(self, place: int) -> None:
        for follower in self._followers[self._offsets[place] : self._offsets[place + 1]]:
            if self._waits_for[follower] == _GIVEN_UP:
                continue
            self._waits_for[follower] -= 1
            if not self._waits_for[follower]:
                self._one_more(follower)
                self._send_later(follower)

    def _send_later(self, place: int) -> None:
        delay_ns = max(self._delay_ns[place], self._arrival_ns[place] - self._clock.now_ns)
        if not delay_ns:
            self._send(place)
            return
        timeout = self._clock.timeout(delay_ns)
        timeout.callbacks.append(lambda _: self._send(place))

    def _give_up_those_after(self, place: int) -> None:
        given_up = [place]
        while given_up:
            place = given_up.pop()
            for follower in self._followers[self._offsets[place] : self._offsets[place + 1]]:
                if self._waits_for[follower] != _GIVEN_UP:
                    self._waits_for[follower] = _GIVEN_UP
                    self._never_sent += 1
                    given_up.append(follower)

    def _one_more(self, place: int) -> None:
        """One more request of a user's session is on its way."""
        if self._users:
            over, open_requests = self._users[self._session[place]]
            self._users[self._session[place]] = over, open_requests + 1

    def _one_less(self, place: int) -> None:
        """One has ended; with the last of them the session is over."""
        if not self._users:
            return
        over, open_requests = self._users.pop(self._session[place])
        if open_requests > 1:
            self._users[self._session[place]] = over, open_requests - 1
        else:
            over.succeed()
