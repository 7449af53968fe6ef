"""KV memory as engines gave it out before it was paged, beside paged, and how much of it holds tokens.

The three contiguous schemes are those that Kwon et al. (SOSP 2023, section 6.1) compare with, after Orca (Yu et al.,
OSDI 2022). Sizes are slots, each of which holds the keys and values of one token.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from experiments.unpaged_memory.address_space import AddressSpace

Reservation = Callable[[int, int], int]
"""Slots that a request of so many prompt and output tokens asks for on admission."""


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """What the slots of a memory are for (Kwon et al., SOSP 2023, figure 2); the four add up to all of it.

    ``token_states`` hold a token; ``reserved`` will hold one of a request that is running; ``internal`` were given to a
    request that will never fill them; ``external`` are free or lost to the rounding of the allocator.
    """

    token_states: int
    reserved: int
    internal: int
    external: int


class KvAllocator(Protocol):
    """KV memory of a replica, as a scheduler of continuous batches asks for it."""

    def admit(self, request: int, prompt_tokens: int, total_tokens: int) -> bool:
        """Memory for a request that begins with ``prompt_tokens`` and ends with ``total_tokens``; False if none."""

    def grow(self, request: int) -> bool:
        """Room for one more token of a request; False if there is none."""

    def release(self, request: int) -> None:
        """All memory of a request is free again."""

    def fragmentation(self) -> Fragmentation:
        """What the memory is used for now."""


def reserve_longest(max_context_tokens: int) -> Reservation:
    """As many slots as a request may ever have: "Orca (Max)"."""
    return lambda prompt_tokens, output_tokens: max_context_tokens


def reserve_power_of_two(prompt_tokens: int, output_tokens: int) -> int:
    """The prompt, and the true output length rounded up to a power of two: "Orca (Pow2)"."""
    return prompt_tokens + (1 << (output_tokens - 1).bit_length())


def reserve_exact(prompt_tokens: int, output_tokens: int) -> int:
    """Just what the request will need, as if an oracle told: "Orca (Oracle)"."""
    return prompt_tokens + output_tokens


@dataclass(slots=True)
class _Piece:
    address: int
    asked: int
    held: int
    total: int


class ContiguousKv:
    """One piece of the address space per request, from admission to the end."""

    def __init__(self, space: AddressSpace, reservation: Reservation) -> None:
        self._space = space
        self._reservation = reservation
        self._pieces: dict[int, _Piece] = {}
        self._held = self._total = self._asked = 0

    def admit(self, request: int, prompt_tokens: int, total_tokens: int) -> bool:
        """Reserve for the whole life of a request."""
        asked = self._reservation(prompt_tokens, total_tokens - prompt_tokens)
        address = self._space.allocate(asked)
        if address is None:
            return False
        self._pieces[request] = _Piece(address, asked, prompt_tokens, total_tokens)
        self._held += prompt_tokens
        self._total += total_tokens
        self._asked += asked
        return True

    def grow(self, request: int) -> bool:
        """One more of the reserved slots holds a token."""
        self._pieces[request].held += 1
        self._held += 1
        return True

    def release(self, request: int) -> None:
        """Give the piece back."""
        piece = self._pieces.pop(request)
        self._space.release(piece.address)
        self._held -= piece.held
        self._total -= piece.total
        self._asked -= piece.asked

    def fragmentation(self) -> Fragmentation:
        """What is reserved beyond a request's end is internal; what no request asked for, external."""
        return Fragmentation(
            self._held, self._total - self._held, self._asked - self._total, self._space.size - self._asked
        )


class PagedKv:
    """Blocks of ``block_size_tokens`` slots, taken as tokens need them (Kwon et al., SOSP 2023, section 4.2)."""

    def __init__(self, slots: int, block_size_tokens: int) -> None:
        self._slots = slots
        self._block_size = block_size_tokens
        self._free_blocks = slots // block_size_tokens
        self._held: dict[int, int] = {}
        self._total: dict[int, int] = {}

    def admit(self, request: int, prompt_tokens: int, total_tokens: int) -> bool:
        """Blocks for the prompt alone."""
        blocks = -(-prompt_tokens // self._block_size)
        if blocks > self._free_blocks:
            return False
        self._free_blocks -= blocks
        self._held[request] = prompt_tokens
        self._total[request] = total_tokens
        return True

    def grow(self, request: int) -> bool:
        """A new block where the last one is full."""
        if self._held[request] % self._block_size == 0:
            if not self._free_blocks:
                return False
            self._free_blocks -= 1
        self._held[request] += 1
        return True

    def release(self, request: int) -> None:
        """Give all blocks back."""
        del self._total[request]
        self._free_blocks += -(-self._held.pop(request) // self._block_size)

    def fragmentation(self) -> Fragmentation:
        """What is left of a last block is reserved as far as its request will fill it, else internal."""
        held = sum(self._held.values())
        reserved = sum(min(-held % self._block_size, self._total[key] - held) for key, held in self._held.items())
        taken = (self._slots // self._block_size - self._free_blocks) * self._block_size
        return Fragmentation(held, reserved, taken - held - reserved, self._slots - taken)
