"""A block table of one request for one group of layers."""

from dataclasses import dataclass


@dataclass(slots=True)
class GroupTable:
    """The blocks of a request for one group of layers, from place ``passed`` on: those before have left the window.

    Blocks before place ``published`` were published.
    """

    blocks: list[int]
    passed: int
    published: int

    @property
    def end(self) -> int:
        """The place after the last block."""
        return self.passed + len(self.blocks)
