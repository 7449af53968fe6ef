"""The part of the context that layers with a sliding window read."""

from heapq import heappop, heappush

from policies.horizon import FOREVER


class WindowedContext:
    """Sum over the members of a decode pool of min(context, window), kept without looking at the members.

    A member below the window gains one token a step until its context crosses the window; crossings are counted by the
    step of the pool at which they happen.
    """

    __slots__ = ("_crossing_steps", "_crossings_at", "growing", "tokens", "window_tokens")

    def __init__(self, window_tokens: int) -> None:
        self.window_tokens = window_tokens
        self.tokens = 0
        self.growing = 0
        self._crossings_at: dict[int, int] = {}
        self._crossing_steps: list[int] = []

    def join(self, context_tokens: int, origin: int) -> None:
        """Count in a member."""
        if context_tokens >= self.window_tokens:
            self.tokens += self.window_tokens
            return
        self.tokens += context_tokens
        self.growing += 1
        crossing = origin + self.window_tokens
        if crossing in self._crossings_at:
            self._crossings_at[crossing] += 1
        else:
            self._crossings_at[crossing] = 1
            heappush(self._crossing_steps, crossing)

    def leave(self, context_tokens: int, origin: int) -> None:
        """Count out a member."""
        self.tokens -= min(context_tokens, self.window_tokens)
        if context_tokens < self.window_tokens:
            self.growing -= 1
            self._crossings_at[origin + self.window_tokens] -= 1

    def steps_to_crossing(self, now_step: int) -> int:
        """Steps until the next member fills its window, ``FOREVER`` if all have."""
        return self._crossing_steps[0] - now_step if self._crossing_steps else FOREVER

    def advance(self, steps: int, now_step: int) -> None:
        """Take note of ``steps`` decode steps that ended at ``now_step``, none of them beyond a crossing."""
        self.tokens += self.growing * steps
        if self._crossing_steps and self._crossing_steps[0] == now_step:
            self.growing -= self._crossings_at.pop(heappop(self._crossing_steps))
