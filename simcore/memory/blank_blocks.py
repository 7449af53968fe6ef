"""Free blocks that cache nothing, of which those that were never taken cost no memory."""

from collections.abc import Iterator


class BlankBlocks:
    """A stack of block numbers, on which 0 to ``total_blocks`` - 1 lie with 0 at the top.

    ``given_back`` lie above those that were never taken, the last at the top.
    """

    __slots__ = ("_total_blocks", "given_back", "touched")

    def __init__(self, total_blocks: int) -> None:
        self.given_back: list[int] = []
        self.touched = 0
        """The numbers below were taken at least once."""
        self._total_blocks = total_blocks

    def __len__(self) -> int:
        return len(self.given_back) + self._total_blocks - self.touched

    def __iter__(self) -> Iterator[int]:
        yield from self.given_back
        yield from range(self.touched, self._total_blocks)

    def take(self, blocks: int) -> list[int]:
        """So many blocks from the top, or all that there are."""
        given_back = self.given_back
        taken = given_back[: -blocks - 1 : -1]
        del given_back[len(given_back) - len(taken) :]
        if len(taken) < blocks:
            first = self.touched
            self.touched = min(self._total_blocks, first + blocks - len(taken))
            taken.extend(range(first, self.touched))
        return taken
