"""Replicas by how long first tokens take."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from policies.bounds import check_seconds, check_value
from policies.scaling import Scaling
from policies.scaling.fleet_view import FleetView


@dataclass(frozen=True, slots=True)
class Latency(Scaling):
    """Want more replicas while first tokens come late, and fewer while they come early.

    Looks at the TTFT that a `share` of requests stayed within since the last look; those that still wait count with
    their time so far. Above `ttft_s` it wants `growth` times as many replicas; below `idle_share` of it one fewer.
    While replicas start nothing changes. `ttft_s` is the tightest objective of the scenario unless stated.

    Source: own; multiplicative increase and additive decrease, so that it is fast out and slow in.
    """

    ttft_s: float = 2.0
    share: float = 0.95
    growth: float = 1.5
    idle_share: float = 0.3

    from_objectives: ClassVar[Mapping[str, str]] = {"ttft_s": "ttft_s"}

    def __post_init__(self) -> None:
        check_seconds(self, "ttft_s")
        check_value("share", self.share, 0.0, 1.0)
        check_value("growth", self.growth, 1.0, 100.0)
        check_value("idle_share", self.idle_share, 0.0, 1.0)

    def wanted(self, fleet: FleetView, now_s: float) -> float:
        """More or fewer than there are, by the last TTFTs."""
        serving = fleet.serving_replicas
        if fleet.starting_replicas:
            return serving + fleet.starting_replicas
        ttft_s = fleet.ttft_s(self.share)
        if ttft_s is None or ttft_s < self.idle_share * self.ttft_s:
            return serving - 1
        return serving * self.growth if ttft_s > self.ttft_s else serving
