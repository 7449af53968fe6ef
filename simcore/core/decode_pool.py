"""All decoding requests of a replica at once: what a decode step changes is the same for each of them.

A decode step gives every member one token. So a member is described by one constant, its *origin*: the value that the
pool's step counter would have had when the member's context was empty. Its context is then ``steps - origin``, and a
step costs the same however many members there are.
"""

from collections.abc import Mapping

from simcore.core.windowed_context import WindowedContext


class DecodePool:
    """Counts over the decoding requests of one replica.

    ``steps`` is the number of decode steps so far, ``size`` the number of members, and ``context_tokens`` the tokens
    whose keys and values the members hold together. A member that outgrows its blocks needs ``blocks_each`` more.
    """

    __slots__ = ("_members_by_phase", "block_size_tokens", "blocks_each", "context_tokens", "size", "steps", "windows")

    def __init__(self, block_size_tokens: int, window_tokens: tuple[int, ...] = (), blocks_each: int = 1) -> None:
        self.block_size_tokens = block_size_tokens
        self.blocks_each = blocks_each
        self.steps = 0
        self.size = 0
        self.context_tokens = 0
        self.windows = tuple(WindowedContext(tokens, block_size_tokens) for tokens in window_tokens)
        # A member needs a new block in the steps that equal its origin modulo the block size.
        self._members_by_phase = [0] * block_size_tokens

    def context_of(self, origin: int) -> int:
        """Tokens that a member of this origin holds in memory."""
        return self.steps - origin

    def needs_block(self, origin: int) -> bool:
        """Whether the next step takes a member of this origin into a new block."""
        return (self.steps - origin) % self.block_size_tokens == 0

    def join(self, context_tokens: int) -> int:
        """Count in a member that holds ``context_tokens``; returns its origin."""
        origin = self.steps - context_tokens
        self.size += 1
        self.context_tokens += context_tokens
        self._members_by_phase[origin % self.block_size_tokens] += 1
        for window in self.windows:
            window.join(context_tokens, origin)
        return origin

    def leave(self, origin: int) -> int:
        """Count out a member of this origin; returns the tokens that it holds."""
        context_tokens = self.steps - origin
        self.size -= 1
        self.context_tokens -= context_tokens
        self._members_by_phase[origin % self.block_size_tokens] -= 1
        for window in self.windows:
            window.leave(context_tokens, origin)
        return context_tokens

    def advance(self, steps: int) -> None:
        """Take note of ``steps`` decode steps of all members."""
        self.steps += steps
        self.context_tokens += self.size * steps
        for window in self.windows:
            window.advance(steps, self.steps)

    def blocks_due(self) -> int:
        """New blocks that all members need for the next step."""
        return self.blocks_each * self._members_by_phase[self.steps % self.block_size_tokens]

    def blocks_passed(self, tables_by_window: Mapping[int, int]) -> int:
        """Blocks that have left the members' windows with the last step, by the tables that slide by each window."""
        return sum(
            tables_by_window.get(window.window_tokens, 0) * window.blocks_passed(self.steps) for window in self.windows
        )

    def blocks_needed(self, steps: int, after: int = 0) -> int:
        """New blocks that all members need over ``steps`` steps, which start ``after`` steps from now."""
        block_size = self.block_size_tokens
        whole, rest = divmod(steps, block_size)
        first = (self.steps + after) % block_size
        phases = self._members_by_phase
        needed = whole * self.size + sum(phases[first : first + rest])
        if first + rest > block_size:
            needed += sum(phases[: first + rest - block_size])
        return self.blocks_each * needed

    def steps_within(self, blocks: int, limit: int, after: int = 0) -> int:
        """The most steps, at most ``limit``, that need no more than ``blocks`` new blocks."""
        if not self.blocks_each:
            return limit
        block_size = self.block_size_tokens
        blocks //= self.blocks_each
        if self.size * (limit // block_size + 1) <= blocks:
            return limit
        steps = min(blocks // self.size * block_size, limit)
        blocks -= steps // block_size * self.size
        phases = self._members_by_phase
        while steps < limit:
            blocks -= phases[(self.steps + after + steps) % block_size]
            if blocks < 0:
                break
            steps += 1
        return steps
