"""A block table of one request for one group of layers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simcore.core.request import Request
from simcore.memory.kv_groups import KvCacheLayout


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


def check_tables(
    tables: Mapping[int, Sequence[GroupTable]],
    layout: KvCacheLayout,
    held: Sequence[tuple[Request, int]],
    unsettled_blocks: int,
) -> None:
    """Recount the tables of requests that hold so many tokens; raises AssertionError where they are wrong."""
    if {request.number for request, _ in held} != tables.keys():
        raise AssertionError("block tables are not those of the requests that hold memory")
    unsettled = 0
    for request, tokens in held:
        for group, table in zip(layout.groups, tables[request.number], strict=True):
            if table.passed != group.released_blocks(tokens):
                raise AssertionError(f"request {request.number} has let go of {table.passed} blocks of a group")
            unsettled += -(-tokens // group.block_size_tokens) - table.end
    if unsettled != unsettled_blocks:
        raise AssertionError(f"blocks not settled: recounted {unsettled}, noted {unsettled_blocks}")
