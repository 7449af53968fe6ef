"""What a request says, as far as reuse of KV memory depends on it: which tokens are equal to which.

Texts are not needed for that. A token is an *identity*, a whole number; equal identities are equal tokens. A text is a
sequence of *runs*, each of successive identities, so that a document, a system prompt or an earlier answer is one run
wherever it appears.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

_KEY_BITS = 32
_DIGEST_BYTES = 12


class Run(NamedTuple):
    """``tokens`` successive token identities from ``first``."""

    first: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Content:
    """The prompt of a request in runs, and the identity of its first output token, from which the output counts on.

    ``output`` is what the output begins with where others may say the same, in runs; identities count on after it.
    """

    prompt: Sequence[Run]
    output_first: int
    output: Sequence[Run] = ()


def join_runs(runs: Iterable[Run]) -> Iterator[Run]:
    """The same tokens in the fewest runs: those that continue each other are joined, empty ones dropped."""
    first = tokens = 0
    for run in runs:
        if not run.tokens:
            continue
        if tokens and run.first == first + tokens:
            tokens += run.tokens
            continue
        if tokens:
            yield Run(first, tokens)
        first, tokens = run
    if tokens:
        yield Run(first, tokens)


class BlockKeys:
    """Keys of the full blocks of one text: two blocks have equal keys just if all tokens up to their ends are equal.

    As in a chain of hashes (vLLM's prefix cache), a key stands for the whole prefix. But instead of one hash a block,
    one per run is enough: within a run, a block is told from the others by its position. ``namespace`` seeds the chain,
    so that texts of different namespaces never share a key. Digests have 96 bits, so that chance collisions can be
    left out of account.
    """

    __slots__ = ("_block_size", "_ends", "_starts")

    def __init__(self, runs: Iterable[Run], block_size_tokens: int, namespace: bytes = b"") -> None:
        self._block_size = block_size_tokens
        self._ends: list[int] = []
        self._starts: list[int] = []
        digest, end, tokens = namespace, 0, 0
        for run in join_runs(runs):
            digest = blake2b(b"%b|%d|%d" % (digest, tokens, run.first), digest_size=_DIGEST_BYTES).digest()
            tokens = run.tokens
            end += tokens
            self._ends.append(end)
            self._starts.append(int.from_bytes(digest, "big") << _KEY_BITS)

    def at(self, block: int) -> int:
        """The key of one full block."""
        return self._starts[bisect_left(self._ends, (block + 1) * self._block_size)] + block

    def between(self, first: int, end: int) -> Iterator[int]:
        """The keys of blocks ``first`` to ``end`` - 1, none of them beyond the text's last full block."""
        return chain.from_iterable(self._ranges(first, end))

    def _ranges(self, first: int, end: int) -> Iterator[range]:
        block = first
        for start, run_end in zip(self._starts, self._ends, strict=True):
            last = min(run_end // self._block_size, end)
            if block < last:
                yield range(start + block, start + last)
                block = last
            if block >= end:
                return
