"""Contiguous allocation in a range of addresses: first fit and the buddy system (Knuth, TAOCP volume 1, section 2.5).

Sizes and addresses count units of any one kind: bytes, or slots that hold the keys and values of one token.
"""

from bisect import bisect_left, insort
from typing import Protocol


class AddressSpace(Protocol):
    """A range of addresses of which pieces are taken and given back."""

    size: int

    def allocate(self, size: int) -> int | None:
        """The address of a free piece of at least ``size``, now taken, or None if none is long enough."""

    def release(self, address: int) -> None:
        """Give back the piece at ``address``, as ``allocate`` returned it; KeyError if there is none."""

    def free_size(self) -> int:
        """What no piece takes, all gaps together."""


class FirstFit:
    """Takes the lowest gap that is long enough; gaps that touch become one."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._gaps = [(0, size)]  # address and length, by address
        self._taken: dict[int, int] = {}

    def allocate(self, size: int) -> int | None:
        """The lowest address at which so much is free."""
        for place, (address, length) in enumerate(self._gaps):
            if length >= size:
                rest = [(address + size, length - size)] if length > size else []
                self._gaps[place : place + 1] = rest
                self._taken[address] = size
                return address
        return None

    def release(self, address: int) -> None:
        """Give back a piece, which joins the gaps beside it."""
        length = self._taken.pop(address)
        place = bisect_left(self._gaps, (address,))
        first = place
        if place and sum(self._gaps[place - 1]) == address:
            first = place - 1
            start, before = self._gaps[first]
            address, length = start, before + length
        last = place
        if place < len(self._gaps) and address + length == self._gaps[place][0]:
            length += self._gaps[place][1]
            last = place + 1
        self._gaps[first:last] = [(address, length)]

    def free_size(self) -> int:
        """All gaps together."""
        return sum(length for _, length in self._gaps)


class Buddy:
    """Pieces are powers of two, halved until they fit; two free halves of one piece become whole again.

    A range whose size is no power of two begins as the powers of two that add up to it, the longest first. What is
    asked for is rounded up, and the rest of a piece is lost to others.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._free: dict[int, list[int]] = {}  # addresses by order, the power of two
        self._taken: dict[int, int] = {}
        self._roots: dict[int, int] = {}
        address = 0
        for order in reversed(range(size.bit_length())):
            if size >> order & 1:
                self._free.setdefault(order, []).append(address)
                self._roots[address] = order
                address += 1 << order

    def allocate(self, size: int) -> int | None:
        """The lowest address of the shortest free piece that is long enough, halved as often as it can be."""
        wanted = max(size - 1, 0).bit_length()
        fitting = [order for order, addresses in self._free.items() if order >= wanted and addresses]
        if not fitting:
            return None
        order = min(fitting)
        address = self._free[order].pop(0)
        while order > wanted:
            order -= 1
            insort(self._free.setdefault(order, []), address + (1 << order))
        self._taken[address] = order
        return address

    def release(self, address: int) -> None:
        """Give back a piece, which joins its other half as long as that is free."""
        order = self._taken.pop(address)
        while self._roots.get(address) != order:
            buddy = self._buddy(address, order)
            free = self._free.get(order, [])
            place = bisect_left(free, buddy)
            if place == len(free) or free[place] != buddy:
                break
            del free[place]
            address = min(address, buddy)
            order += 1
        insort(self._free.setdefault(order, []), address)

    def free_size(self) -> int:
        """All free pieces together."""
        return sum(len(addresses) << order for order, addresses in self._free.items())

    def _buddy(self, address: int, order: int) -> int:
        root = max(start for start in self._roots if start <= address)
        return root + ((address - root) ^ (1 << order))
