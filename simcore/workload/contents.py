"""What requests contain, in columns: the runs of all prompts one after another, and where each prompt's begin."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simcore.core.content import Content, Run

Int64Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """The contents of successive requests; identities are at least 0.

    The prompt of request i is the runs ``offsets[i]`` to ``offsets[i + 1]`` - 1, each of ``run_tokens`` successive
    identities from ``run_first``; its output counts on from ``output_first[i]``.
    """

    offsets: Int64Array
    run_first: Int64Array
    run_tokens: Int64Array
    output_first: Int64Array

    def __len__(self) -> int:
        return len(self.output_first)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Contents):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # arrays can change

    def __iter__(self) -> Iterator[Content]:
        runs = list(map(Run, self.run_first.tolist(), self.run_tokens.tolist()))
        start, *ends = self.offsets.tolist()
        for end, output_first in zip(ends, self.output_first.tolist(), strict=True):
            yield Content(tuple(runs[start:end]), output_first)
            start = end

    def of(self, place: int) -> Content:
        """The content of one request."""
        runs = slice(int(self.offsets[place]), int(self.offsets[place + 1]))
        prompt = tuple(map(Run, self.run_first[runs].tolist(), self.run_tokens[runs].tolist()))
        return Content(prompt, int(self.output_first[place]))

    @property
    def prompt_tokens(self) -> Int64Array:
        """The length of each prompt."""
        sums = exclusive_sums(self.run_tokens)
        return sums[self.offsets[1:]] - sums[self.offsets[:-1]]

    def end(self, output_tokens: Int64Array) -> int:
        """The first identity beyond all of them, outputs of the given lengths included."""
        ends = ((self.run_first + self.run_tokens).max(initial=0), (self.output_first + output_tokens).max(initial=0))
        return int(max(ends))

    def at(self, places: slice | NDArray[np.intp]) -> "Contents":
        """The contents at ``places``, in that order."""
        starts, sizes = self.offsets[:-1][places], np.diff(self.offsets)[places]
        offsets = exclusive_sums(sizes)
        runs = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
        return Contents(offsets, self.run_first[runs], self.run_tokens[runs], self.output_first[places])

    def shifted(self, by: int) -> "Contents":
        """The same with ``by`` added to every identity."""
        return Contents(self.offsets, self.run_first + by, self.run_tokens, self.output_first + by)


def exclusive_sums(values: Int64Array) -> Int64Array:
    """The sum of all values before each place, and of all of them at the end."""
    sums = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=sums[1:])
    return sums


def one_after_another(parts: Sequence[Contents]) -> Contents:
    """The contents of all parts, whose identities mean the same."""
    before = exclusive_sums(np.array([len(part.run_first) for part in parts], dtype=np.int64))
    offsets = [part.offsets[1:] + start for part, start in zip(parts, before[:-1], strict=True)]
    return Contents(
        np.concatenate((np.zeros(1, dtype=np.int64), *offsets)),
        np.concatenate([part.run_first for part in parts]),
        np.concatenate([part.run_tokens for part in parts]),
        np.concatenate([part.output_first for part in parts]),
    )


def unlike_any_other(prompt_tokens: Int64Array, output_tokens: Int64Array, first: int) -> Contents:
    """Contents of which only the lengths are known, so that no two share a token; identities count from ``first``."""
    output_first = first + exclusive_sums(prompt_tokens + output_tokens)[:-1] + prompt_tokens
    return Contents(
        np.arange(len(prompt_tokens) + 1, dtype=np.int64), output_first - prompt_tokens, prompt_tokens, output_first
    )


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces of the prompts of ``owner`` (a request each); those of one owner stand in the order of its prompt."""

    owner: Int64Array
    first: Int64Array
    tokens: Int64Array


def pieced_together(pieces: Sequence[Pieces], output_first: Int64Array) -> Contents:
    """Contents whose prompts are, one after another, what each of ``pieces`` has of them, in the fewest runs."""
    owner = np.concatenate([piece.owner for piece in pieces])
    order = np.argsort(owner, kind="stable")
    owner = owner[order]
    first = np.concatenate([piece.first for piece in pieces])[order]
    tokens = np.concatenate([piece.tokens for piece in pieces])[order]
    begins = np.ones(len(owner), dtype=np.bool_)
    begins[1:] = (owner[1:] != owner[:-1]) | (first[1:] != first[:-1] + tokens[:-1])
    starts = np.flatnonzero(begins)
    sums = exclusive_sums(tokens)
    run_tokens = sums[np.append(starts[1:], len(owner))] - sums[starts] if len(starts) else tokens
    counts = np.bincount(owner[starts], minlength=len(output_first))
    return Contents(exclusive_sums(counts), first[starts], run_tokens, output_first)


def pieces_of(contents: Contents) -> Pieces:
    """All runs of the prompts."""
    owner = np.repeat(np.arange(len(contents), dtype=np.int64), np.diff(contents.offsets))
    return Pieces(owner, contents.run_first, contents.run_tokens)
