"""What requests contain, in columns: the same as request by request."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.core.errors import InputError
from simcore.workload import RequestBatch
from simcore.workload.contents import Contents, Pieces, exclusive_sums, one_after_another, pieced_together
from simcore.workload.in_memory import concatenate, merge
from tests.simcore.workload.contents_model import texts, tokens_of

rows = st.lists(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4)), max_size=4), min_size=1, max_size=6)


def ints(values):
    return np.array(list(values), dtype=np.int64)


def columns(rows):
    runs = [run for row in rows for run in row]
    offsets = exclusive_sums(ints(map(len, rows)))
    return Contents(
        offsets, ints(run[0] for run in runs), ints(run[1] for run in runs), 100 + 10 * ints(range(len(rows)))
    )


def batch(contents, arrival_ns=None):
    count = len(contents)
    arrival_ns = ints(range(count)) if arrival_ns is None else arrival_ns
    return RequestBatch(arrival_ns, contents.prompt_tokens, np.ones(count, np.int64), contents=contents)


@given(rows, st.data())
def test_any_selection(rows, data):
    contents = columns(rows)
    everything = list(contents)
    places = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    assert list(contents.at(np.array(places, dtype=np.intp))) == [everything[place] for place in places]
    start, end = sorted(data.draw(st.tuples(*2 * [st.integers(0, len(rows))])))
    assert list(contents.at(slice(start, end))) == everything[start:end]
    assert [contents.of(place) for place in range(len(rows))] == everything
    assert contents.prompt_tokens.tolist() == [len(tokens_of(content)) for content in everything]
    assert one_after_another([contents.at(slice(0, start)), contents.at(slice(start, None))]) == contents


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(1, 3)), max_size=6), max_size=4))
def test_pieces_stand_one_after_another_in_the_fewest_runs(drawn):
    parts = [sorted(part, key=lambda piece: piece[0]) for part in drawn] or [[]]
    pieces = [Pieces(*(ints(piece[column] for piece in part) for column in range(3))) for part in parts]
    contents = list(pieced_together(pieces, np.zeros(4, np.int64)))
    for owner, content in enumerate(contents):
        expected = [piece[1] + k for part in parts for piece in part if piece[0] == owner for k in range(piece[2])]
        assert tokens_of(content) == expected
        ends = [run.first + run.tokens for run in content.prompt]
        assert all(run.first != end for run, end in zip(content.prompt[1:], ends, strict=False))


@given(st.lists(rows, min_size=1, max_size=4), st.integers(0, 15))
def test_merged_streams_share_no_token_and_keep_what_they_share_within(drawn, unknown):
    parts = [batch(columns(rows)) for rows in drawn]
    parts = [replace(part, contents=None) if unknown >> place & 1 else part for place, part in enumerate(parts)]
    merged = merge([replace(part, arrival_ns=np.zeros(len(part), np.int64)) for part in parts])
    if all(part.contents is None for part in parts):
        assert merged.contents is None
        return
    place, seen = 0, set()
    for part in parts:
        whole = texts(merged.at(slice(place, place + len(part))))
        place += len(part)
        found = {token for prompt, output in whole for token in prompt + output}
        assert not found & seen
        seen |= found
        flat = [token for prompt, output in whole for token in prompt + output]
        if part.contents is None:
            assert len(flat) == len(found)
        else:
            before = [token for prompt, output in texts(part) for token in prompt + output]
            assert len({new - old for new, old in zip(flat, before, strict=True)}) <= 1


def test_batches_of_one_workload_keep_their_identities():
    contents = columns([[(0, 5)], [(0, 5), (9, 2)]])
    whole = batch(contents)
    assert concatenate([whole.at(slice(0, 1)), whole.at(slice(1, 2))]).contents == contents


def test_too_many_identities_for_all_streams():
    contents = Contents(ints([0, 1]), ints([2**61]), ints([4]), ints([2**61 + 4]))
    with pytest.raises(InputError, match=r"^workload\.streams is 3, expected streams with fewer token identities"):
        merge([batch(contents)] * 3)


def test_prompts_are_as_long_as_they_are_said_to_be():
    with pytest.raises(ValueError, match="contents whose prompts are not as long as prompt_tokens"):
        RequestBatch(ints([0]), ints([6]), ints([1]), contents=columns([[(0, 5)]]))


def test_contents_are_equal_by_value():
    assert columns([[(0, 5)]]) == columns([[(0, 5)]])
    assert columns([[(0, 5)]]) != columns([[(0, 6)]])
    assert columns([[(0, 5)]]) != "contents"
