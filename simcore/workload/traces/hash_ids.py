"""What the prompts of a trace contain, where it says so by hash ids: one for each block of a prompt's tokens."""

import json
from array import array

import numpy as np
from numpy.typing import NDArray

from simcore.workload.batch import Int64Array
from simcore.workload.contents import Contents, Pieces, exclusive_sums, pieced_together

_MOST_IDENTITIES = 2**56
"""Beyond the tokens of all blocks that ids may name."""


class HashIdColumn:
    """The ids of successive rows, each of a block of ``block_tokens``; equal ids are equal blocks.

    The tokens of a block are numbered on from its id times ``block_tokens``. The last block of a prompt may be partial;
    its tokens are then the first ones of its id. Ids that are texts, such as hexadecimal hashes, or too large for that
    are numbered as they appear, beyond all others.
    """

    def __init__(self, column: str, block_tokens: int | None) -> None:
        self._column, self._block_tokens = column, block_tokens
        self._ids, self._counts = array("q"), array("q")
        self._hashes: dict[int | str, int] = {}

    def parse(self, value: object, prompt_tokens: int) -> list[int]:
        """One row's ids.

        Raises ValueError where they are neither whole numbers nor texts, or not as many as the prompt has blocks, and
        where the size of a block is not known.
        """
        if self._block_tokens is None:
            raise ValueError(f"{self._column} stands for blocks of unknown size, expected 'block_tokens' to be stated")
        ids = _listed(value)
        if ids is None:
            expected = "expected a list of whole numbers of at least 0, or of texts"
            raise ValueError(f"{self._column} is {_shown(value)}, {expected}")
        blocks = -(-prompt_tokens // self._block_tokens)
        if len(ids) != blocks:
            expected = f"expected {blocks}: one for each {self._block_tokens} of the {prompt_tokens} prompt tokens"
            raise ValueError(f"{self._column} has {len(ids)} ids, {expected}, unless 'block_tokens' says otherwise")
        most = _MOST_IDENTITIES // self._block_tokens // 2
        return [part if isinstance(part, int) and part < most else self._hash(part) for part in ids]

    def _hash(self, part: int | str) -> int:
        """A negative number that stands for an id too large, or no number at all."""
        return -1 - self._hashes.setdefault(part, len(self._hashes))

    def append(self, ids: list[int]) -> None:
        """Add a row that was parsed."""
        self._ids.extend(ids)
        self._counts.append(len(ids))

    def contents(
        self, prompt_tokens: Int64Array, output_tokens: Int64Array, order: slice | NDArray[np.intp]
    ) -> Contents:
        """The contents of all rows, put in ``order``; lengths are as in the file. Outputs are like nothing else."""
        size = self._block_tokens or 0
        ids = np.frombuffer(self._ids, dtype=np.int64)
        first = np.where(ids >= 0, ids, max(int(ids.max()), -1) - ids) * size
        counts = np.frombuffer(self._counts, dtype=np.int64)
        tokens = np.full(len(first), size, dtype=np.int64)
        tokens[np.cumsum(counts) - 1] = prompt_tokens - (counts - 1) * size
        owner = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        output_first = int(first.max()) + size + exclusive_sums(output_tokens)[:-1]
        return pieced_together([Pieces(owner, first, tokens)], output_first).at(order)


def _listed(value: object) -> list[int | str] | None:
    """The ids of a list, or of one written as JSON, as in a CSV file; None if it is neither."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (json.JSONDecodeError, RecursionError):
            return None
    if not isinstance(value, list) or not all(map(_is_id, value)):
        return None
    return value


def _is_id(part: object) -> bool:
    return (type(part) is int and part >= 0) or (isinstance(part, str) and part != "")


def _shown(value: object) -> str:
    text = "missing" if value is None or value == "" else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
