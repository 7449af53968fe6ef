"""Swap space: CPU memory for the blocks of preempted requests."""

from collections.abc import Sequence

from simcore.memory.link import SWAP_IN, SWAP_OUT, Link


class SwapSpace:
    """``capacity_blocks`` blocks of CPU memory, reached over the replica's link to it.

    As in vLLM V0 blocks move before the forward pass of the step that moves them, so a step lasts until its transfers
    have ended, ``busy_until_ns``, and its own time after that (Kwon et al., SOSP 2023, section 4.5, for swapping).
    Blocks of swap space are numbered from 0.
    """

    __slots__ = (
        "_block_bytes",
        "_free",
        "_from_gpu",
        "_to_gpu",
        "_untouched",
        "blocks_in",
        "blocks_out",
        "busy_until_ns",
        "capacity_blocks",
        "swaps_in",
        "swaps_out",
        "used_blocks",
    )

    def __init__(self, capacity_blocks: int, block_bytes: int, to_gpu: Link, from_gpu: Link) -> None:
        self.capacity_blocks = capacity_blocks
        self._block_bytes = block_bytes
        self._to_gpu = to_gpu
        self._from_gpu = from_gpu
        self._free: list[int] = []
        self._untouched = 0
        self.used_blocks = 0
        self.swaps_out = 0
        self.swaps_in = 0
        self.blocks_out = 0
        self.blocks_in = 0
        self.busy_until_ns = 0

    @property
    def free_blocks(self) -> int:
        """Blocks of swap space that are not in use."""
        return self.capacity_blocks - self.used_blocks

    def move_out(self, now_ns: int, blocks: int) -> list[int]:
        """Move so many blocks from the GPU, for which there must be room; returns the blocks that they go to."""
        if blocks > self.free_blocks:
            raise AssertionError(f"{blocks} blocks to swap out, room for {self.free_blocks}")
        self.used_blocks += blocks
        self.swaps_out += 1
        self.blocks_out += blocks
        end_ns = self._from_gpu.send(now_ns, blocks * self._block_bytes, SWAP_OUT)
        self.busy_until_ns = max(self.busy_until_ns, end_ns)
        taken = self._free[: -blocks - 1 : -1]
        del self._free[len(self._free) - len(taken) :]
        fresh = blocks - len(taken)
        taken += range(self._untouched, self._untouched + fresh)
        self._untouched += fresh
        return taken

    def give_up(self, blocks: Sequence[int]) -> None:
        """Free blocks that nobody will come back for."""
        self.used_blocks -= len(blocks)
        self._free += blocks

    def move_in(self, now_ns: int, blocks: Sequence[int]) -> None:
        """Move blocks back to the GPU, after what is still on its way out, and free them."""
        self.give_up(blocks)
        self.swaps_in += 1
        self.blocks_in += len(blocks)
        end_ns = self._to_gpu.send(now_ns, len(blocks) * self._block_bytes, SWAP_IN, self.busy_until_ns)
        self.busy_until_ns = max(self.busy_until_ns, end_ns)
