"""Letting more urgent requests take the place of running ones."""

from policies.batching import StepLimits
from simcore.core.request import Request
from simcore.scheduling.room import blocks_to_admit
from simcore.scheduling.running_keys import RunningKeys
from simcore.scheduling.state import SchedulerState


class Displacement:
    """Preempts running requests until the most urgent waiting one has room, or none that runs is less urgent."""

    __slots__ = ("_had_room", "_keys", "_state")

    def __init__(self, state: SchedulerState, keys: RunningKeys) -> None:
        self._state = state
        self._keys = keys
        self._had_room = False

    @property
    def stable_steps(self) -> int:
        """Decode steps in which nobody need be displaced who need not be now; as ``make_room`` has just found it."""
        # Whoever is first could run but was not let in, and decodes use up the room.
        return 1 if self._had_room else self._keys.stable_steps

    def make_room(self, limits: StepLimits, now_s: float) -> list[Request]:
        """Preempt whom the requests that wait displace; returns them in that order."""
        state, keys = self._state, self._keys
        keys.refresh(now_s)
        displaced: list[Request] = []
        self._had_room = False
        while state.running:
            candidate = state.waiting.first(now_s)
            blocks = blocks_to_admit(state, candidate)
            if len(state.running) < limits.max_running_requests and state.memory.can_hold(candidate, blocks):
                self._had_room = True
                break
            worst = keys.least_urgent(candidate, now_s)
            # The key with which the candidate stands in the queue: taken anew it might be less, and whoever is
            # displaced would stand before it.
            if worst is None or keys.key(worst, now_s) <= state.waiting.first_key:
                break
            state.preempt(worst, now_s)
            displaced.append(worst)
        return displaced
