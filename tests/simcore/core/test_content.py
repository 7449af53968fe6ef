"""Block keys against the tokens that they stand for."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from simcore.core.content import BlockKeys, Run, join_runs

runs = st.lists(st.builds(Run, st.integers(0, 6), st.integers(0, 5)), max_size=6)


def tokens_of(text):
    return [run.first + place for run in text for place in range(run.tokens)]


def keys_of(text, block_size, namespace=b""):
    return list(BlockKeys(text, block_size, namespace).between(0, len(tokens_of(text)) // block_size))


@given(runs)
def test_joined_runs_are_the_same_tokens_in_the_fewest_runs(text):
    joined = list(join_runs(text))
    assert tokens_of(joined) == tokens_of(text)
    assert all(run.tokens for run in joined)
    assert all(one.first + one.tokens != other.first for one, other in pairwise(joined))


@given(runs, runs, st.integers(1, 4))
def test_keys_are_equal_just_where_all_tokens_up_to_there_are(text, other, block_size):
    ours, theirs = keys_of(text, block_size), keys_of(other, block_size)
    assert len(ours) == len(tokens_of(text)) // block_size
    for block, (our_key, their_key) in enumerate(zip(ours, theirs, strict=False)):
        end = (block + 1) * block_size
        assert (our_key == their_key) == (tokens_of(text)[:end] == tokens_of(other)[:end])


@given(runs, st.integers(1, 4), st.data())
def test_any_part_of_the_keys_can_be_had(text, block_size, data):
    keys = keys_of(text, block_size)
    first = data.draw(st.integers(0, len(keys)))
    end = data.draw(st.integers(first, len(keys)))
    assert list(BlockKeys(text, block_size).between(first, end)) == keys[first:end]
    assert [BlockKeys(text, block_size).at(block) for block in range(first, end)] == keys[first:end]


@given(runs, st.integers(1, 4))
def test_namespaces_share_no_key(text, block_size):
    assert not set(keys_of(text, block_size, b"a")) & set(keys_of(text, block_size, b"b"))
