"""A term of a step: kernels alike on one rank, by a number of tokens that decides what they take."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from simcore.cost.operators import Operator
from simcore.cost.prices import MessagePrice, Price


class StepCounts(NamedTuple):
    """What a step's kernels depend on, but for attention.

    ``tokens`` are those of all data-parallel ranks, ``own_tokens`` those of the fullest, which also samples ``rows``;
    ``decoding`` of the ``requests`` decode.
    """

    tokens: int
    own_tokens: int
    rows: int
    decoding: int
    requests: int


class Counted(IntEnum):
    """Which of ``StepCounts`` a term is over, by its place there."""

    ALL = 0
    """Tokens of all data-parallel ranks."""
    OWN = 1
    """Tokens of the fullest data-parallel rank."""
    ROWS = 2
    """Tokens that it samples."""
    DECODING = 3
    """Requests that decode."""


@dataclass(frozen=True, slots=True)
class Term:
    """``count`` kernels alike in a step: what one takes, computes and moves over so many ``tokens``.

    ``operator`` says the arithmetic and the memory traffic; a message between ranks, which has none, has no operator.
    """

    name: str
    count: int
    price: Price
    tokens: Counted
    operator: Operator | None = None

    @classmethod
    def of(cls, operator: Operator, price: Price, tokens: Counted) -> "Term":
        """The kernels of an operator."""
        return cls(operator.name, operator.count, price, tokens, operator)

    @classmethod
    def message(cls, name: str, count: int, price: Price, bytes_per_token: float, tokens: Counted) -> "Term":
        """``count`` messages, whose ``price`` is over bytes."""
        return cls(name, count, MessagePrice(price, bytes_per_token), tokens)

    @property
    def launches(self) -> int:
        """Kernels that an engine starts for all of it, where it starts them one by one."""
        return self.count * (1 if self.operator is None else self.operator.launches)

    def seconds(self, tokens: int) -> float:
        """All kernels; nothing is launched for no tokens."""
        return self.count * self.price.seconds(tokens) if tokens else 0.0

    def flops(self, tokens: int) -> float:
        """Floating-point operations of all kernels."""
        return 0.0 if self.operator is None else self.count * self.operator.flops(tokens)

    def bytes(self, tokens: int) -> float:
        """Bytes that all kernels read and write in memory."""
        return 0.0 if self.operator is None or not tokens else self.count * self.operator.bytes(tokens)
