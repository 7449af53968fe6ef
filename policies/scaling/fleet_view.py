"""What a scaling policy may look at."""

from typing import Protocol


class FleetView(Protocol):
    """The replicas of a pool, when a scaling policy is asked how many there should be."""

    @property
    def stated_replicas(self) -> int:
        """How many there are at the start."""

    @property
    def serving_replicas(self) -> int:
        """How many take requests."""

    @property
    def starting_replicas(self) -> int:
        """How many will once they have started."""

    @property
    def start_s(self) -> float:
        """Seconds that a start takes, if no other starts beside it."""

    @property
    def since_s(self) -> float:
        """Seconds since a policy was asked last, or since the start of the run."""

    @property
    def arrived_requests(self) -> int:
        """Requests that were sent to the pool in that time."""

    @property
    def waiting_requests(self) -> int:
        """Requests that wait on replicas of the pool, or for one to serve."""

    @property
    def running_requests(self) -> int:
        """Requests that hold KV memory there."""

    @property
    def used_share(self) -> float:
        """How full replicas that serve are on average: the larger share of KV blocks and of the batch in use."""

    def ttft_s(self, share: float) -> float | None:
        """The TTFT that a share of requests stayed within since a policy was asked last; None without any.

        Those whose first token has not come yet count with their time so far.
        """
