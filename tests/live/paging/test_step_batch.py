import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from live.graphs import GraphedDecoder, pad, padded_batch, padded_width
from live.paging.step_batch import SequenceInput, build_batch
from live.paging.upload import packed_size, unpacked

SEQUENCES = st.lists(
    st.builds(
        lambda tokens, position, wanted: SequenceInput(tokens, position, [], min(wanted, len(tokens))),
        st.lists(st.integers(0, 1000), min_size=1, max_size=6),
        st.integers(0, 40),
        st.integers(0, 6),
    ),
    min_size=1,
    max_size=8,
)


@given(SEQUENCES, st.integers(1, 17), st.randoms(use_true_random=False), st.booleans())
def test_a_batch_says_of_every_token_what_its_sequence_does(
    sequences: list[SequenceInput], block_size: int, chance: object, arrays: bool
) -> None:
    for sequence in sequences:
        blocks = -(-(sequence.position + len(sequence.tokens)) // block_size)
        table = [chance.randrange(500) for _ in range(blocks + 2)]  # type: ignore[attr-defined]
        sequence.block_table = np.array(table, dtype=np.int32) if arrays else table
    batch = build_batch(sequences, block_size)
    expected_rows, found_rows = [], []
    decodes = [sequence for sequence in sequences if len(sequence.tokens) == 1]
    chunks = [sequence for sequence in sequences if len(sequence.tokens) > 1]
    assert batch.decodes == len(decodes)
    at = 0
    starts = {}
    for row, sequence in enumerate([*decodes, *chunks]):
        starts[id(sequence)] = at
        context = sequence.position + len(sequence.tokens)
        assert batch.contexts[row] == context
        assert batch.query_starts[row] == at
        used = -(-context // block_size)
        assert batch.block_tables[row, :used].tolist() == list(sequence.block_table[:used])
        for offset, token in enumerate(sequence.tokens):
            position = sequence.position + offset
            slot = sequence.block_table[position // block_size] * block_size + position % block_size
            assert (batch.tokens[at], batch.positions[at], batch.slots[at]) == (token, position, slot)
            at += 1
    for sequence in sequences:
        stop = starts[id(sequence)] + len(sequence.tokens)
        expected_rows += range(stop - sequence.logit_tokens, stop)
    found_rows = batch.logit_rows.tolist()
    assert found_rows == expected_rows
    assert batch.query_starts[-1] == at == len(batch.tokens)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="block table of 1 blocks is too short, expected 2"):
        build_batch([SequenceInput([1], 16, [3])], 16)
    with pytest.raises(ValueError, match="without new tokens"):
        build_batch([SequenceInput([], 16, [3, 4])], 16)


def test_packed_batches_come_out_as_they_went_in() -> None:
    host = build_batch([SequenceInput([1, 2], 3, [4, 5], 2), SequenceInput([9], 0, [7])], 4)
    packed = torch.from_numpy(np.concatenate([array.ravel() for array in host.arrays]).astype(np.int64))
    assert len(packed) == packed_size(host)
    step = unpacked(packed, host, 5)
    for tensor, array in zip(
        (step.tokens, step.positions, step.slots, step.block_tables, step.contexts, step.query_starts, step.logit_rows),
        host.arrays,
        strict=True,
    ):
        assert tensor.tolist() == array.tolist()
        assert str(tensor.dtype).endswith(str(array.dtype))


@given(st.integers(1, 512), st.integers(1, 10_000))
def test_paddings_are_few_and_not_far(sequences: int, blocks: int) -> None:
    assert sequences <= padded_batch(sequences) <= max(8, 2 * sequences)
    assert blocks <= padded_width(blocks) <= max(16, 2 * blocks)
    assert len({padded_batch(size) for size in range(1, 513)}) < 40


def test_rows_of_padding_write_nowhere() -> None:
    host = build_batch([SequenceInput([4], 5, [1, 2]), SequenceInput([6], 3, [3])], 4)
    assert GraphedDecoder.takes(host)
    padded = pad(host, 4, 16)
    assert padded.slots.tolist() == [9, 15, -1, -1]
    assert padded.contexts.tolist() == [6, 4, 0, 0]
    assert padded.block_tables.shape == (4, 16)
    assert padded.decodes == 4
    assert not GraphedDecoder.takes(build_batch([SequenceInput([4, 5], 5, [1, 2])], 4))
