"""Replicas that get no requests for a while, since a policy found that they do badly."""

from dataclasses import dataclass, field
from functools import partial

from policies.ejection import Ejection
from simcore.core.clock import to_ns
from simcore.service.clock import Clock
from simcore.service.stage import Stage

EJECTED = "ejected"


@dataclass(slots=True)
class Ejections:
    """Tells a policy what becomes of requests, and keeps replicas closed that it ejects.

    What an ejected replica has taken in it goes on with. ``records`` are who was out, from when and until when.
    """

    clock: Clock
    stage: Stage
    policy: Ejection
    records: list[tuple[int, int, int]] = field(default_factory=list)
    _out: set[int] = field(default_factory=set)

    def judge(self, place: int, ttft_s: float | None) -> None:
        """Have the policy know of a request that is over at a place: its first token took so long, or it failed."""
        if place in self._out:
            return
        out_s = self.policy.judge(place, ttft_s)
        if out_s is None or len(self._out) + 1 > self.policy.most_share * len(self.stage.replicas):
            return
        now_ns = self.clock.now_ns
        back_ns = now_ns + to_ns(out_s)
        self.records.append((place, now_ns, back_ns))
        self._out.add(place)
        self.stage.close(place, EJECTED)
        self.clock.call_at(back_ns, partial(self._return, place))

    def _return(self, place: int) -> None:
        self._out.remove(place)
        self.stage.open(place, EJECTED)
        self.policy.returned(place)
