"""The flat batch of one step: decodes first, then prompt chunks, with block tables to read and slots to write."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

Ints = npt.NDArray[np.integer]


@dataclass(slots=True)
class SequenceInput:
    """What one request brings to a step: ``tokens`` that follow ``position`` tokens whose keys and values are there.

    ``block_table`` are the blocks of the sequence from its first token on, those of the new tokens included: a list,
    or (faster) an int32 array; it may be longer. Logits are wanted after the last ``logit_tokens`` of the new tokens.
    """

    tokens: Sequence[int] | Ints
    position: int
    block_table: Sequence[int] | Ints
    logit_tokens: int = 1


@dataclass(slots=True)
class HostBatch:
    """A step's batch in numpy, sequences in the order in which they run: those with one new token first.

    Per token: ``tokens``, ``positions``, ``slots``, -1 where nothing
    is to be written. Per sequence: ``block_tables`` [sequences, blocks], ``contexts`` (new tokens included) and
    ``query_starts`` [sequences + 1]. ``logit_rows`` are the tokens whose logits are wanted, in the caller's order.
    """

    tokens: Ints
    positions: Ints
    slots: Ints
    block_tables: Ints
    contexts: Ints
    query_starts: Ints
    logit_rows: Ints
    decodes: int

    @property
    def arrays(self) -> tuple[Ints, ...]:
        """All arrays, as a device wants them."""
        return (
            self.tokens, self.positions, self.slots, self.block_tables, self.contexts, self.query_starts,
            self.logit_rows,
        )  # fmt: skip


@dataclass(slots=True)
class StepBatch:
    """A step's batch on a device; ``host`` is the same in numpy. Integers are int64, tables and lengths int32."""

    tokens: torch.Tensor
    positions: torch.Tensor
    slots: torch.Tensor
    block_tables: torch.Tensor
    contexts: torch.Tensor
    query_starts: torch.Tensor
    logit_rows: torch.Tensor
    host: HostBatch
    max_context_tokens: int

    @property
    def decodes(self) -> int:
        """Sequences with one new token; they come first."""
        return self.host.decodes


def build_batch(sequences: Sequence[SequenceInput], block_size: int) -> HostBatch:
    """The flat batch of some sequences.

    Raises ``ValueError`` for a sequence without new tokens and for a block table that is too short.
    """
    counts = [len(sequence.tokens) for sequence in sequences]
    order = sorted(range(len(sequences)), key=lambda index: counts[index] > 1)
    ordered = [sequences[index] for index in order]
    lengths = np.array([counts[index] for index in order], dtype=np.int64)
    before = np.array([sequence.position for sequence in ordered], dtype=np.int64)
    contexts = before + lengths
    starts = np.zeros(len(order) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    if not lengths.all():
        raise ValueError("a sequence without new tokens is in the batch")
    tables = _block_tables(ordered, -(-contexts // block_size))
    rows = np.repeat(np.arange(len(order)), lengths)
    positions = np.arange(starts[-1]) + np.repeat(before - starts[:-1], lengths)
    slots = tables[rows, positions // block_size].astype(np.int64) * block_size + positions % block_size
    tokens = np.concatenate([np.asarray(sequence.tokens, dtype=np.int64) for sequence in ordered])
    return HostBatch(
        tokens=tokens,
        positions=positions,
        slots=slots,
        block_tables=tables,
        contexts=contexts.astype(np.int32),
        query_starts=starts.astype(np.int32),
        logit_rows=_logit_rows(sequences, order, starts),
        decodes=int((lengths == 1).sum()),
    )


def _block_tables(sequences: Sequence[SequenceInput], blocks: Ints) -> Ints:
    tables = np.zeros((len(sequences), int(blocks.max())), dtype=np.int32)
    for row, sequence, count in zip(tables, sequences, blocks.tolist(), strict=True):
        if len(sequence.block_table) < count:
            raise ValueError(f"a block table of {len(sequence.block_table)} blocks is too short, expected {count}")
        row[:count] = sequence.block_table[:count]
    return tables


def _logit_rows(sequences: Sequence[SequenceInput], order: Sequence[int], starts: Ints) -> Ints:
    stops = np.empty(len(order), dtype=np.int64)
    stops[np.array(order)] = starts[1:]
    wanted = np.array([sequence.logit_tokens for sequence in sequences], dtype=np.int64)
    if (wanted == 1).all():
        return stops - 1
    before = np.cumsum(wanted) - wanted
    return np.arange(wanted.sum()) + np.repeat(stops - wanted - before, wanted)
