"""Running requests on their way from one replica to another, whose KV is copied while they decode on."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from policies.migration import Migration
from simcore.core.clock import to_s
from simcore.core.request import UNSET, ReadOnlyRequest, Request, request_behind
from simcore.recording.migration_log import MigrationLog, MigrationRow
from simcore.recording.recorder import Recorder
from simcore.service.clock import Clock
from simcore.service.links import Network, Topology, Transfer
from simcore.service.migration_view import ReplicaToMigrate
from simcore.service.roles import DecodeReplica, MigratingReplica
from simcore.service.stage import Stage

GONE = "it ended or was preempted meanwhile"
NO_ROOM = "there was no room for it"
OUTGROWN = "it outgrew what was set aside for it"
_MORE_TOKENS = 8
"""More than a request gets until the step in progress, and one that is scheduled already, have ended."""


@dataclass(frozen=True, slots=True)
class MigrationConfig:
    """How requests move.

    A token takes ``bytes_per_token``. Replicas are looked at every ``interval_ns``. Blocks are set aside for
    ``spare_tokens`` beyond those that a request has. It stops when ``last_tokens`` or fewer are left to copy, or after
    ``most_copies``.
    """

    bytes_per_token: int
    interval_ns: int
    spare_tokens: int
    last_tokens: int
    most_copies: int


@dataclass(slots=True)
class _Migration:
    """One request: where it goes, and how much of it has been copied."""

    request: Request
    source_place: int
    target_place: int
    source: MigratingReplica
    target: MigratingReplica
    room_tokens: int
    asked_ns: int
    start_ns: int = UNSET
    stop_ns: int = UNSET
    copied_tokens: int = 0
    copies: int = 0
    output_tokens: int = 0
    transfer: Transfer | None = None


class Migrations:
    """Asks a policy at intervals which requests move, and moves them as Llumnix does (Sun et al., OSDI 2024, 4.2).

    Blocks are set aside at the target. What a request has is copied while it decodes on, then what it has got
    meanwhile, until little is left. It stops between two steps, the rest is copied, and it goes on at the target. A
    move is called off if there is no room within an interval, or if the request ends or is preempted before it stops.
    What the source holds is free once the request has stopped: only the last few tokens are copied after that.
    """

    def __init__(
        self,
        clock: Clock,
        stage: Stage,
        policy: Migration,
        network: Network,
        topology: Topology,
        config: MigrationConfig,
        recorder: Recorder,
    ) -> None:
        self.log = MigrationLog()
        self.on_held: Callable[[Request, DecodeReplica | Migrations], None] = lambda request, holder: None
        """Told who has a request from now on: this on the way, then the target."""
        self.on_dropped: Callable[[Request], None] = lambda request: None
        """Told when a client gives up between the two."""
        self._clock = clock
        self._stage = stage
        self._policy = policy
        self._network = network
        self._topology = topology
        self._config = config
        self._recorder = recorder
        self._open: dict[int, _Migration] = {}
        self._busy: set[int] = set()
        self._views = [
            ReplicaToMigrate(replica, partial(self._busy.__contains__, place))
            for place, replica in enumerate(stage.replicas)
        ]
        self._looks = False

    def wake(self) -> None:
        """Somebody has come: look at the replicas from the next interval on, as long as anybody is there."""
        if not self._looks:
            self._looks = True
            interval_ns = self._config.interval_ns
            self._clock.call_at((self._clock.now_ns // interval_ns + 1) * interval_ns, self._look)

    def has(self, request: Request) -> bool:
        """Whether a request has stopped here and not gone on there."""
        migration = self._open.get(request.number)
        return migration is not None and migration.stop_ns != UNSET

    def give_up(self, request: Request, reason: str) -> None:
        """Abort a request between two replicas, whose client gives up now."""
        migration = self._open[request.number]
        if migration.transfer is not None:
            self._network.stop(migration.transfer)
        migration.target.withdraw(request)
        self._close(migration)
        self._stage.ended(request, migration.target_place)
        self._recorder.request_rejected(request, migration.source.index, self._clock.now_ns, reason)
        self.on_dropped(request)
        if request.done is not None:
            request.done(False)

    def close(self) -> None:
        """Hand to the recorder those that the end of the run cut off between two replicas."""
        for migration in self._open.values():
            if migration.stop_ns != UNSET:
                self._recorder.request_unfinished(migration.request, migration.source.index)

    def _look(self) -> None:
        self._looks = False
        now_ns, replicas = self._clock.now_ns, self._stage.replicas
        for replica in replicas:
            replica.catch_up()
        for migration in list(self._open.values()):
            if migration.start_ns == UNSET and migration.asked_ns < now_ns:
                self._call_off(migration, NO_ROOM)
        for source, target, view in self._policy.moves(self._views, to_s(now_ns)):
            if source != target and not {source, target} & self._busy:
                assert isinstance(view, ReadOnlyRequest)
                self._begin(request_behind(view), source, target)
        if self._open or any(replica.requests.by_number for replica in replicas):
            self.wake()

    def _begin(self, request: Request, source_place: int, target_place: int) -> None:
        source, target = self._stage.replicas[source_place], self._stage.replicas[target_place]
        assert isinstance(source, MigratingReplica)
        assert isinstance(target, MigratingReplica)
        room_tokens = request.tokens_in_memory + self._config.spare_tokens
        migration = _Migration(request, source_place, target_place, source, target, room_tokens, self._clock.now_ns)
        self._open[request.number] = migration
        self._busy |= {source_place, target_place}
        target.ask_for_room(request, room_tokens, partial(self._room, migration))

    def _room(self, migration: _Migration) -> None:
        if self._open.get(migration.request.number) is migration:  # else it was called off meanwhile
            migration.start_ns = self._clock.now_ns
            self._go_on(migration)

    def _go_on(self, migration: _Migration) -> None:
        """Copy what the request has got, or stop it if that is little; call the move off if it cannot go on."""
        request, config = migration.request, self._config
        if not migration.source.decodes(request):
            self._call_off(migration, GONE)
            return
        tokens = request.tokens_in_memory
        if tokens + _MORE_TOKENS > migration.room_tokens:
            self._call_off(migration, OUTGROWN)
        elif tokens - migration.copied_tokens <= config.last_tokens or migration.copies >= config.most_copies:
            migration.source.stop(request, partial(self._stopped, migration))
        else:
            self._copy(migration, tokens, self._go_on)

    def _copy(self, migration: _Migration, tokens: int, then: Callable[[_Migration], None]) -> None:
        size_bytes = (tokens - migration.copied_tokens) * self._config.bytes_per_token
        migration.copied_tokens = tokens
        migration.copies += 1
        route = self._topology.route(migration.source.index, migration.target.index)
        migration.transfer = self._network.send(route, size_bytes, lambda transfer: then(migration))

    def _stopped(self, migration: _Migration, output_tokens: int | None) -> None:
        if output_tokens is None:
            self._call_off(migration, GONE)
            return
        request = migration.request
        assert request.computed_tokens <= migration.room_tokens
        migration.output_tokens = output_tokens
        migration.stop_ns = self._clock.now_ns
        self._stage.moved(request, migration.source_place, migration.target_place)
        self.on_held(request, self)
        if request.computed_tokens > migration.copied_tokens:
            self._copy(migration, request.computed_tokens, self._land)
        else:
            self._land(migration)

    def _land(self, migration: _Migration) -> None:
        request, source, target = migration.request, migration.source, migration.target
        self.log.rows.append(
            MigrationRow(
                request.number,
                source.index,
                target.index,
                migration.start_ns,
                migration.stop_ns,
                self._clock.now_ns,
                migration.copied_tokens * self._config.bytes_per_token,
                migration.copies,
            )
        )
        self._close(migration)
        target.land(request, migration.output_tokens)
        self.on_held(request, target)

    def _call_off(self, migration: _Migration, reason: str) -> None:
        self.log.called_off[reason] += 1
        migration.target.withdraw(migration.request)
        self._close(migration)

    def _close(self, migration: _Migration) -> None:
        del self._open[migration.request.number]
        self._busy -= {migration.source_place, migration.target_place}
