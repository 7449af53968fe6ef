"""What prompts are made of: parts that many share, then the request's own tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simcore.workload.batch import RequestBatch
from simcore.workload.contents import Int64Array, Pieces, exclusive_sums, pieced_together
from simcore.workload.lengths import LengthDistribution
from simcore.workload.streams import random_stream
from simcore.workload.transformed import Transform
from simcore.workload.zipf import ZipfChoice

_OWN = -1
"""Stands for the first identity of a piece that is its request's own."""

DrawPieces = Callable[[RequestBatch], Pieces]


class Part(Protocol):
    """A part of prompts."""

    def start(self, seed: int, place: int, first: int) -> tuple[DrawPieces, int]:
        """The sequence of this part in successive prompts, from its beginning; and the identities that it takes up.

        These count from ``first``; ``place`` is that of the part in the prompt.
        """


@dataclass(frozen=True, slots=True)
class UniqueText:
    """Tokens that no other request has, where that matters before the end of a prompt."""

    tokens: LengthDistribution

    def start(self, seed: int, place: int, first: int) -> tuple[DrawPieces, int]:
        """One draw a request."""
        random = random_stream(seed, f"prefix {place}")

        def draw(requests: RequestBatch) -> Pieces:
            owner = np.arange(len(requests), dtype=np.int64)
            return Pieces(owner, np.full(len(requests), _OWN), self.tokens.quantile(random.random(len(requests))))

        return draw, 0


@dataclass(frozen=True, slots=True)
class SharedTexts:
    """Different texts out of ``among``, chosen by Zipf's law: a system prompt, or documents of a corpus.

    ``count`` is how many, at most ``most``; they stand in the order in which they are drawn. Each text has one length
    for good. With ``tenants`` above 1 each tenant has ``among`` texts of its own.
    """

    among: int
    exponent: float
    count: LengthDistribution
    most: int
    tokens: LengthDistribution
    tenants: int = 1

    def start(self, seed: int, place: int, first: int) -> tuple[DrawPieces, int]:
        """Draws the lengths of all texts; then, a request, how many and which."""
        of_texts = random_stream(seed, f"texts of prefix {place}").random(self.among * self.tenants)
        tokens = self.tokens.quantile(of_texts)
        starts = first + exclusive_sums(tokens)
        random = random_stream(seed, f"prefix {place}")
        choice = ZipfChoice(self.among, self.exponent)

        def draw(requests: RequestBatch) -> Pieces:
            uniform = random.random((len(requests), 1 + self.most))
            chosen = choice.distinct(uniform[:, 1:], self.count.quantile(uniform[:, 0]))
            owner, column = np.nonzero(chosen >= 0)
            text = chosen[owner, column] + _tenant(requests, self.tenants)[owner] * self.among
            return Pieces(owner, starts[text], tokens[text])

        return draw, int(starts[-1]) - first


@dataclass(frozen=True, slots=True)
class ExampleLists:
    """The first ``count`` examples, at most ``most``, of one template out of ``among``, chosen by Zipf's law.

    So a prompt with few examples is a prefix of one with more of the same template. ``tokens`` is the length of an
    example. With ``tenants`` above 1 each tenant has templates of its own.
    """

    among: int
    exponent: float
    count: LengthDistribution
    most: int
    tokens: LengthDistribution
    tenants: int = 1

    def start(self, seed: int, place: int, first: int) -> tuple[DrawPieces, int]:
        """Draws the lengths of all examples; then, a request, how many and of which template."""
        of_examples = random_stream(seed, f"texts of prefix {place}").random(self.among * self.tenants * self.most)
        sums = exclusive_sums(self.tokens.quantile(of_examples))
        random = random_stream(seed, f"prefix {place}")
        choice = ZipfChoice(self.among, self.exponent)

        def draw(requests: RequestBatch) -> Pieces:
            owner = np.arange(len(requests), dtype=np.int64)
            uniform = random.random((len(requests), 2))
            chosen = choice.distinct(uniform[:, 1:], np.ones_like(owner))[:, 0]
            start = (chosen + _tenant(requests, self.tenants) * self.among) * self.most
            tokens = sums[start + self.count.quantile(uniform[:, 0])] - sums[start]
            return Pieces(owner, first + sums[start], tokens)

        return draw, int(sums[-1])


@dataclass(frozen=True, slots=True)
class Prompts:
    """Prompts of the given parts and then the request's own tokens, as many as its prompt has so far."""

    parts: tuple[Part, ...]

    def start(self, seed: int) -> Transform:
        """The contents that belong to ``seed``, from their beginning; prompts become longer by the parts."""
        return PromptWriter(self.parts, seed).write


class PromptWriter:
    """Writes the prompts of successive requests; every request's own tokens and output have identities of their own.

    These are in a row: its own tokens, then its output, then the next request's own.
    """

    def __init__(self, parts: Sequence[Part], seed: int) -> None:
        self._draws: list[DrawPieces] = []
        self._next = 0
        for place, part in enumerate(parts):
            draw, identities = part.start(seed, place, self._next)
            self._draws.append(draw)
            self._next += identities

    def write(self, requests: RequestBatch, begins: NDArray[np.intp] | None = None) -> RequestBatch:
        """The requests with contents; only those at the places ``begins``, by default all, begin with the parts."""
        count = len(requests)
        beginning = requests if begins is None else requests.at(begins)
        pieces = [draw(beginning) for draw in self._draws]
        if begins is not None:
            pieces = [Pieces(begins[piece.owner], piece.first, piece.tokens) for piece in pieces]
        pieces.append(Pieces(np.arange(count, dtype=np.int64), np.full(count, _OWN), requests.prompt_tokens))
        own_tokens = np.zeros(count, dtype=np.int64)
        for piece in pieces:
            own = piece.first == _OWN
            own_tokens[piece.owner[own]] += piece.tokens[own]  # no part has two own pieces in one prompt
        sums = self._next + exclusive_sums(own_tokens + requests.output_tokens)
        self._next = int(sums[-1])
        own_next = sums[:-1].copy()
        placed = []
        for piece in pieces:
            own = piece.first == _OWN
            placed.append(Pieces(piece.owner, np.where(own, own_next[piece.owner], piece.first), piece.tokens))
            own_next[piece.owner[own]] += piece.tokens[own]
        contents = pieced_together(placed, output_first=own_next)
        return replace(requests, prompt_tokens=contents.prompt_tokens, contents=contents)


def _tenant(requests: RequestBatch, tenants: int) -> Int64Array:
    """Whose texts a request's are: its tenant's, or everyone's."""
    if tenants == 1 or requests.tenant is None:
        return np.zeros(len(requests), dtype=np.int64)
    return requests.tenant
