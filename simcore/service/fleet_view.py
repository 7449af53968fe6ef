"""What scaling policies see of a pool."""

from collections.abc import Callable, Sequence
from math import ceil

from simcore.core.clock import to_s
from simcore.core.request import UNSET, Request
from simcore.recording.fleet_log import DRAINING, SERVING, STARTING, WAKING, FleetLog
from simcore.service.crashes import CRASHED
from simcore.service.stage import Stage


class FleetAsSeen:
    """The ``FleetView`` of policies, with the books of what happened since one was asked last."""

    __slots__ = (
        "_log",
        "_most_running",
        "_now_ns",
        "_since_ns",
        "_stage",
        "_ttft_ns",
        "arrived_requests",
        "start_s",
        "stated_replicas",
        "waiting_outside",
    )

    def __init__(
        self,
        stage: Stage,
        log: FleetLog,
        now_ns: Callable[[], int],
        stated_replicas: int,
        start_s: float,
        most_running: int | None,
    ) -> None:
        self.stated_replicas = stated_replicas
        self.start_s = start_s
        self.arrived_requests = 0
        self.waiting_outside: Callable[[], int] = lambda: 0
        """How many requests wait for a replica to serve."""
        self._stage = stage
        self._log = log
        self._now_ns = now_ns
        self._most_running = most_running
        self._since_ns = 0
        self._ttft_ns: list[int] = []

    def begin_again(self) -> None:
        """A policy has been asked: what it may look back at begins now."""
        self.arrived_requests = 0
        self._ttft_ns.clear()
        self._since_ns = self._now_ns()

    def note_ended(self, request: Request) -> None:
        """A request is gone from a replica of the pool."""
        if request.first_token_ns > self._since_ns:
            self._ttft_ns.append(request.first_token_ns - request.arrival_ns)

    @property
    def up(self) -> Sequence[int]:
        """The replicas that serve and are not down after a crash."""
        return [replica for replica in self._log.in_phase([SERVING]) if not self._stage.is_closed(replica, CRASHED)]

    @property
    def serving_replicas(self) -> int:
        """How many take requests."""
        return len(self.up)

    @property
    def starting_replicas(self) -> int:
        """How many will once they have started."""
        return len(self._log.in_phase([STARTING, WAKING]))

    @property
    def since_s(self) -> float:
        """Seconds since a policy was asked last, or since the start of the run."""
        return to_s(self._now_ns() - self._since_ns)

    @property
    def waiting_requests(self) -> int:
        """Requests that wait on replicas of the pool, or for one to serve."""
        own = sum(self._stage.view(replica).waiting_requests for replica in self._holding)
        return own + self.waiting_outside()

    @property
    def running_requests(self) -> int:
        """Requests that hold KV memory there."""
        return sum(self._stage.view(replica).running_requests for replica in self._holding)

    @property
    def used_share(self) -> float:
        """How full replicas that serve are on average: the larger share of KV blocks and of the batch in use."""
        up = self.up
        return sum(map(self._used_share_of, up)) / len(up) if up else 0.0

    def ttft_s(self, share: float) -> float | None:
        """The TTFT that a share of requests stayed within since a policy was asked last; None without any.

        Those whose first token has not come yet count with their time so far.
        """
        now_ns, found = self._now_ns(), list(self._ttft_ns)
        for replica in self._holding:
            holder = self._stage.replicas[replica]
            holder.catch_up()
            for request in holder.requests.by_number.values():
                if request.first_token_ns == UNSET:
                    found.append(now_ns - request.arrival_ns)
                elif request.first_token_ns > self._since_ns:
                    found.append(request.first_token_ns - request.arrival_ns)
        return to_s(sorted(found)[max(ceil(share * len(found)) - 1, 0)]) if found else None

    @property
    def _holding(self) -> Sequence[int]:
        return self._log.in_phase([SERVING, DRAINING])

    def _used_share_of(self, replica: int) -> float:
        view = self._stage.view(replica)
        blocks = 1 - view.free_blocks / view.total_blocks
        batch = 0.0 if self._most_running is None else view.running_requests / self._most_running
        return max(blocks, batch)
