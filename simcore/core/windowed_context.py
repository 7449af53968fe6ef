"""The part of the context that layers with a sliding window read."""

from heapq import heappop, heappush

from policies.horizon import FOREVER


class WindowedContext:
    """Sum over the members of a decode pool of min(context, window), kept without looking at the members.

    A member below the window gains one token a step until its context crosses the window; crossings are counted by the
    step of the pool at which they happen. Of a member that fills its window, a block leaves it in the steps that equal
    its origin plus the window less one, modulo the block size.
    """

    __slots__ = (
        "_block_size_tokens",
        "_crossing_steps",
        "_crossings_at",
        "_full_by_phase",
        "growing",
        "tokens",
        "window_tokens",
    )

    def __init__(self, window_tokens: int, block_size_tokens: int = 1) -> None:
        self.window_tokens = window_tokens
        self._block_size_tokens = block_size_tokens
        self._full_by_phase = [0] * block_size_tokens
        self.tokens = 0
        self.growing = 0
        self._crossings_at: dict[int, int] = {}
        self._crossing_steps: list[int] = []

    def join(self, context_tokens: int, origin: int) -> None:
        """Count in a member."""
        if context_tokens >= self.window_tokens:
            self.tokens += self.window_tokens
            self._full_by_phase[origin % self._block_size_tokens] += 1
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
        else:
            self._full_by_phase[origin % self._block_size_tokens] -= 1

    def blocks_passed(self, now_step: int) -> int:
        """Blocks, one each of as many members, that have left the window with the step that ended at ``now_step``."""
        return self._full_by_phase[(now_step - self.window_tokens + 1) % self._block_size_tokens]

    def steps_to_crossing(self, now_step: int) -> int:
        """Steps until the next member fills its window, ``FOREVER`` if all have."""
        return self._crossing_steps[0] - now_step if self._crossing_steps else FOREVER

    def advance(self, steps: int, now_step: int) -> None:
        """Take note of ``steps`` decode steps that ended at ``now_step``, none of them beyond a crossing."""
        self.tokens += self.growing * steps
        if self._crossing_steps and self._crossing_steps[0] == now_step:
            crossed = self._crossings_at.pop(heappop(self._crossing_steps))
            self.growing -= crossed
            self._full_by_phase[(now_step - self.window_tokens) % self._block_size_tokens] += crossed
