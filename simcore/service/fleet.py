"""The replicas of a pool that come and go: they start, serve, drain and stop, as a scaling policy wants."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import log as natural_log

from policies.chance import uniform
from policies.scaling import Scaling
from policies.scaling.cooldown import Cooldown
from simcore.core.clock import to_s
from simcore.core.request import Request
from simcore.recording.fleet_log import (
    ASLEEP,
    DRAINING,
    SERVING,
    STARTING,
    WAKING,
    WARMING,
    Decision,
    FleetLog,
    ReclaimRow,
)
from simcore.service.clock import ARRIVAL, BackgroundAlarm, Clock
from simcore.service.crashes import CRASHED
from simcore.service.fleet_view import FleetAsSeen
from simcore.service.replica import Replica
from simcore.service.stage import ABSENT, Stage
from simcore.service.weight_loading import WeightLinks, WeightLoading, start_s


@dataclass(frozen=True, slots=True)
class SpotConfig:
    """How a provider takes instances back: by chance after a mean time, and those of stated places at stated times."""

    notice_ns: int
    mean_life_ns: int | None
    stated: Sequence[tuple[int, int]]
    seed: int


@dataclass(frozen=True, slots=True)
class FleetConfig:
    """Places that replicas may take, how many are there at the start, and what a start takes beside its weights."""

    places: range
    replicas: int
    warm: int
    interval_ns: int
    boot_ns: int
    ready_ns: int
    """From the last weight to the first request."""
    wake_ns: int
    links: WeightLinks
    most_running: int | None
    spot: SpotConfig | None = None


class Fleet:
    """Starts and stops replicas at the places of a pool, and keeps some asleep beside them.

    Who is to go takes no more requests and stops when its last one has ended. A replica that is down after a crash when
    a decision is made is let go as well.
    """

    def __init__(
        self,
        clock: Clock,
        stage: Stage,
        config: FleetConfig,
        policy: Scaling,
        cooldown: Cooldown,
        rebuild: Callable[[int], Replica],
    ) -> None:
        self.log = FleetLog()
        alone_s = start_s(config.links, config.boot_ns, config.ready_ns)
        self.seen = FleetAsSeen(stage, self.log, lambda: clock.now_ns, config.replicas, alone_s, config.most_running)
        self.on_serving: Callable[[], None] = lambda: None
        self.on_renewed: Callable[[int], None] = lambda place: None
        self.take_down: Callable[[int], tuple[int, int]] = lambda place: (0, 0)
        """Ends a replica at once; returns how many requests it had, and how many of them are given up."""
        self.config = config
        self._clock = clock
        self._stage = stage
        self._policy = policy
        self._cooldown = cooldown
        self._rebuild = rebuild
        self._loading = WeightLoading(clock, config.links, config.places)
        self._lives = dict.fromkeys(config.places, 0)
        self._born = dict.fromkeys(config.places, 0)
        self._used: set[int] = set()
        self._noticed: set[int] = set()

    def begin(self) -> None:
        """Have the first replicas there, ready, and the first decision made in time."""
        config, now_ns = self.config, self._clock.now_ns
        for number, place in enumerate(config.places):
            if number < config.replicas:
                self._used.add(place)
                self._bear(place, SERVING)
            else:
                self._stage.close(place, ABSENT)
                if number < config.replicas + config.warm:
                    self._bear(place, ASLEEP)
        for place, at_ns in config.spot.stated if config.spot is not None else ():
            self._later(at_ns - now_ns, partial(self._give_notice, place))
        self._later(config.interval_ns, self._decide)

    def sent(self, request: Request, place: int) -> None:
        """A request goes to the replica at a place."""
        if place in self.config.places:
            self.seen.arrived_requests += 1

    def ended(self, request: Request, place: int) -> None:
        """A request is gone from there; the last one of a replica that drains lets it stop."""
        if place in self.config.places:
            self.seen.note_ended(request)
            if self.log.phase_of(place) == DRAINING and not self._requests(place):
                self._stop(place)

    @property
    def expects(self) -> bool:
        """Whether a replica is on its way."""
        return self.seen.starting_replicas > 0

    @property
    def _goes_on(self) -> bool:
        return self._clock.has_more_to_do or self.seen.waiting_outside() > 0

    def _requests(self, place: int) -> int:
        return len(self._stage.replicas[place].requests.by_number)

    def _later(self, delay_ns: int, action: Callable[[], None]) -> None:
        BackgroundAlarm(self._clock, delay_ns, ARRIVAL).callbacks.append(lambda _: action())

    def _in_this_life(self, place: int, delay_ns: int, action: Callable[[int], None]) -> None:
        """Do something with a replica later, unless it is gone by then or is to do something else."""
        life = self._lives[place]
        self._later(delay_ns, lambda: action(place) if self._lives[place] == life else None)

    def _decide(self) -> None:
        if not self._goes_on:
            return
        now_ns = self._clock.now_ns
        for place in self.log.in_phase([SERVING]):
            if self._stage.is_closed(place, CRASHED):
                self._drain(place)
        wanted = self._policy.wanted(self.seen, to_s(now_ns))
        present = self.seen.serving_replicas + self.seen.starting_replicas
        target = self._cooldown.replicas(wanted, present, to_s(now_ns))
        self.log.decisions.append(Decision(now_ns, wanted, present, target))
        self.seen.begin_again()
        for _ in range(target - present):
            self._add()
        for _ in range(present - target):
            self._remove()
        self._keep_warm()
        self._later(self.config.interval_ns, self._decide)

    def _add(self) -> None:
        """One more: one that was on its way out, or one that sleeps, or a new one, if there is a place."""
        leaving = [place for place in self.log.in_phase([DRAINING]) if place not in self._noticed]
        if leaving:
            place = max(leaving, key=self._requests)
            self._go_on(place, SERVING)
            self._stage.open(place, ABSENT)
            return
        sleepers = self.log.in_phase([ASLEEP])
        if sleepers:
            place = sleepers[0]
            self._go_on(place, WAKING)
            self._loading.load(place, True, lambda: self._in_this_life(place, self.config.wake_ns, self._serve))
            return
        self._start(STARTING, self._serve)

    def _remove(self) -> None:
        """One fewer: the one that began to start last, or else the one with the fewest requests."""
        starting = self.log.in_phase([STARTING, WAKING])
        if starting:
            self._stop(starting[-1])
        else:
            self._drain(min(self.seen.up, key=lambda place: (self._requests(place), -place)))

    def _keep_warm(self) -> None:
        for _ in range(self.config.warm - len(self.log.in_phase([ASLEEP, WARMING]))):
            self._start(WARMING, lambda place: self._go_on(place, ASLEEP))

    def _start(self, phase: str, then: Callable[[int], None]) -> None:
        """Start a replica at the first free place, if there is one."""
        place = next((place for place in self.config.places if self.log.phase_of(place) is None), None)
        if place is None:
            return
        config = self.config
        self._bear(place, phase)

        def load(place: int) -> None:
            self._loading.load(place, False, lambda: self._in_this_life(place, config.ready_ns, then))

        self._in_this_life(place, config.boot_ns, load)

    def _bear(self, place: int, phase: str) -> None:
        """There is an instance at a place from now on; a provider may take it back."""
        self._go_on(place, phase)
        self._born[place] += 1
        spot, number = self.config.spot, self._born[place]
        if spot is not None and spot.mean_life_ns is not None:
            life_ns = round(-natural_log(uniform(spot.seed, place, number)) * spot.mean_life_ns)
            self._later(life_ns, lambda: self._expire(place, number))

    def _expire(self, place: int, number: int) -> None:
        """The life of an instance is over, if it is still there."""
        if self._born[place] == number and self.log.phase_of(place) is not None:
            self._give_notice(place)

    def _go_on(self, place: int, phase: str) -> None:
        self._lives[place] += 1
        self.log.enter(place, phase, self._clock.now_ns)

    def _serve(self, place: int) -> None:
        if place in self._used:
            self._stage.replace(place, self._rebuild(place))
            self.on_renewed(place)
        self._used.add(place)
        self._go_on(place, SERVING)
        self._stage.open_fully(place)
        self.on_serving()

    def _drain(self, place: int) -> None:
        self._go_on(place, DRAINING)
        self._stage.close(place, ABSENT)
        if not self._requests(place):
            self._stop(place)

    def _stop(self, place: int) -> None:
        """A replica is done; its instance goes, or stays to sleep."""
        self._loading.stop(place)
        if place not in self._noticed and len(self.log.in_phase([ASLEEP, WARMING])) < self.config.warm:
            self._go_on(place, ASLEEP)
            return
        self._noticed.discard(place)
        self._lives[place] += 1
        self.log.leave(place, self._clock.now_ns)

    def _give_notice(self, place: int) -> None:
        """An instance is to be gone in a while; another takes its place at once."""
        if not self._goes_on:
            return
        phase = self.log.phase_of(place)
        row = ReclaimRow(place, self._clock.now_ns, void=phase is None or place in self._noticed)
        self.log.reclaims.append(row)
        if row.void:
            return
        assert self.config.spot is not None
        self._noticed.add(place)
        if phase == SERVING:
            self._drain(place)
        elif phase != DRAINING:
            self._stop(place)
        if place in self._noticed:
            self._in_this_life(place, self.config.spot.notice_ns, lambda place: self._vanish(place, row))
        if phase in (SERVING, STARTING, WAKING):
            self._add()

    def _vanish(self, place: int, row: ReclaimRow) -> None:
        row.interrupted, row.given_up = self.take_down(place)
