"""Requests on their way from the replica that computes their prompt to the one that decodes them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

from simcore.core.request import UNSET, Request
from simcore.recording.handover_log import HandoverLog, HandoverRow
from simcore.recording.recorder import Recorder
from simcore.service.clock import Clock
from simcore.service.links import Network, Topology, Transfer
from simcore.service.roles import DecodeReplica, PrefillReplica
from simcore.service.stage import Stage


@dataclass(frozen=True, slots=True)
class HandoverConfig:
    """How KV moves.

    A token takes ``bytes_per_token``. With ``layers`` each layer moves as soon as it is computed, None moves all once
    the prompt is. A share of transfers is lost at their end, and sent again up to ``retries`` times; then the decoding
    replica computes the prompt itself.
    """

    bytes_per_token: int
    layers: int | None = None
    lost_share: float = 0.0
    retries: int = 0
    seed: int = 0


@dataclass(slots=True)
class _Handover:
    """One request: where it goes, and what of its KV has yet to be sent."""

    request: Request
    output_tokens: int
    source: PrefillReplica
    source_place: int
    unsent_bytes: int
    target: DecodeReplica | None = None
    target_place: int = 0
    prefilled_ns: int = UNSET
    room_ns: int = UNSET
    attempts: int = 1
    moving: list[Transfer] = field(default_factory=list)


class Handovers:
    """Follows each request from its prefill to where it decodes.

    The decoding replica is picked when the prompt is computed or, if layers move one by one, when the step begins that
    completes it. It sets blocks aside as soon as it has room; then KV moves over the links between the two. Meanwhile
    the prompt stays where it was computed: if there is no room to decode, prefill replicas fill up and stop as well.
    """

    def __init__(
        self,
        clock: Clock,
        stage: Stage,
        network: Network,
        topology: Topology,
        config: HandoverConfig,
        recorder: Recorder,
    ) -> None:
        self.log = HandoverLog()
        self.on_left: Callable[[Request, int], None] = lambda request, place: None
        """Told when a request leaves the prefill replica at a place, to decode elsewhere."""
        self.on_dropped: Callable[[Request], None] = lambda request: None
        """Told when a client gives up between the two."""
        self.on_landed: Callable[[Request, DecodeReplica], None] = lambda request, replica: None
        """Told when a request is where it decodes."""
        self.stage = stage
        self._clock = clock
        self._network = network
        self._topology = topology
        self._config = config
        self._recorder = recorder
        self._lost_share = config.lost_share
        self._random = Random(f"lost transfers {config.seed}")
        self._open: dict[int, _Handover] = {}

    def slow_links(self, replica: int, share: float) -> None:
        """Leave a share of the bandwidth that the links of a replica have, 1 for all of it."""
        names = self._topology.links_of(replica)
        self._network.set_rates({name: share * self._topology.bytes_per_s[name] for name in names})

    def lose(self, share: float) -> None:
        """Have a share of the transfers be lost from now on, beside those that always are."""
        self._lost_share = 1 - (1 - self._config.lost_share) * (1 - share)

    def begin(self, request: Request, output_tokens: int, source: PrefillReplica, place: int) -> None:
        """Follow a request that a prefill replica takes in now."""
        size_bytes = request.prompt_tokens * self._config.bytes_per_token
        self._open[request.number] = _Handover(request, output_tokens, source, place, size_bytes)

    def has(self, request: Request) -> bool:
        """Whether a request is on its way: it waits for its prefill, or for its KV to move."""
        return request.number in self._open

    def prefilling(self, request: Request) -> None:
        """The step begins with which a prompt is complete."""
        handover = self._open.get(request.number)
        if self._config.layers is not None and handover is not None and handover.output_tokens > 1:
            self._ask_for_room(handover)

    def prefilled(self, source: PrefillReplica, request: Request, is_open: bool) -> bool:
        """A prompt is computed; returns whether its request goes on elsewhere."""
        handover = self._open.get(request.number)
        if handover is None or not is_open or handover.output_tokens == 1:
            self._open.pop(request.number, None)
            source.let_go(request)
            return False
        handover.prefilled_ns = self._clock.now_ns
        request.lost_token_ns = request.first_token_ns
        self.on_left(request, handover.source_place)
        if handover.target is None:
            self._ask_for_room(handover)
        else:
            self._send(handover)
        return True

    def give_up(self, request: Request, reason: str) -> None:
        """Abort a request on its way, whose client gives up now."""
        handover = self._open.pop(request.number)
        for transfer in handover.moving:
            self._network.stop(transfer)
        if handover.target is not None:
            handover.target.withdraw(request)
            self.stage.ended(request, handover.target_place)
        if handover.prefilled_ns == UNSET:
            handover.source.give_up(request, reason)
            return
        handover.source.let_go(request)
        self._recorder.request_rejected(request, handover.source.index, self._clock.now_ns, reason)
        self.on_dropped(request)
        if request.done is not None:
            request.done(False)

    def close(self) -> None:
        """Hand to the recorder those that the end of the run cut off between two replicas."""
        for handover in self._open.values():
            if handover.prefilled_ns != UNSET:
                self._recorder.request_unfinished(handover.request, handover.source.index)

    def _ask_for_room(self, handover: _Handover) -> None:
        request = handover.request
        refusals = self.stage.refusals(request, handover.output_tokens)
        place = self.stage.pick(request, refusals)
        assert place is not None  # none of them is ever down
        handover.target_place = place
        target = self.stage.replicas[handover.target_place]
        assert isinstance(target, DecodeReplica)
        handover.target = target
        target.ask_for_room(request, request.prompt_tokens, partial(self._room, handover))

    def _room(self, handover: _Handover) -> None:
        if self._open.get(handover.request.number) is handover:  # else its client gave up meanwhile
            handover.room_ns = self._clock.now_ns
            self._send(handover)

    def _send(self, handover: _Handover) -> None:
        """Move what can be moved now: of a prompt that is being computed all but the last layer."""
        if handover.room_ns == UNSET:
            return
        size_bytes = handover.unsent_bytes
        if handover.prefilled_ns == UNSET:
            assert self._config.layers is not None
            size_bytes -= size_bytes // self._config.layers
        handover.unsent_bytes -= size_bytes
        if size_bytes:
            assert handover.target is not None
            route = self._topology.route(handover.source.index, handover.target.index)
            handover.moving.append(self._network.send(route, size_bytes, partial(self._moved, handover)))

    def _moved(self, handover: _Handover, transfer: Transfer) -> None:
        handover.moving.remove(transfer)
        if handover.moving or handover.unsent_bytes or handover.prefilled_ns == UNSET:
            return
        if self._lost_share and self._random.random() < self._lost_share:
            if handover.attempts > self._config.retries:
                self._land(handover, lost=True)
                return
            handover.attempts += 1
            handover.unsent_bytes = handover.request.prompt_tokens * self._config.bytes_per_token
            self._send(handover)
            return
        self._land(handover, lost=False)

    def _land(self, handover: _Handover, lost: bool) -> None:
        """Let a request decode: with its KV, or without it if that is lost, so that it is computed again."""
        request, target = handover.request, handover.target
        assert target is not None
        del self._open[request.number]
        self.log.rows.append(
            HandoverRow(
                request.number,
                handover.source.index,
                target.index,
                handover.prefilled_ns,
                handover.room_ns,
                self._clock.now_ns,
                handover.attempts * request.prompt_tokens * self._config.bytes_per_token,
                handover.attempts,
                lost,
            )
        )
        handover.source.let_go(request)
        if lost:
            target.withdraw(request)
            request.computed_tokens = 0
            request.preemptions += 1
            target.submit(request, handover.output_tokens)
        else:
            target.land(request, handover.output_tokens)
        self.on_landed(request, target)
