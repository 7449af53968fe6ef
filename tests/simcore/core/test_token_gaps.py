import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core import token_gaps
from simcore.core.token_gaps import TokenGaps, merged, split

ENTRIES = st.lists(
    st.tuples(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 3), st.booleans()), max_size=25
)


@pytest.fixture
def small_buffer(monkeypatch):
    monkeypatch.setattr(token_gaps, "_BUFFER", 16)
    monkeypatch.setattr(token_gaps, "_CHUNKS", 8)


def expand(chunks):
    return [
        gap for chunk in chunks for gap, count in zip(*map(np.ndarray.tolist, chunk), strict=True) for _ in range(count)
    ]


def fill(entries, since_ns):
    """Runs of steps, one after the other, as the gaps keep them and written out: (end, gap, requests)."""
    gaps, naive, now_ns = TokenGaps(since_ns), [], 0
    for durations, count, as_array in entries:
        gaps.add_steps(now_ns, np.array(durations, dtype=np.int64) if as_array else durations, count)
        for duration in durations:
            now_ns += duration
            naive.append((now_ns, duration, count))
    return gaps, naive


@settings(deadline=None, derandomize=True)
@given(entries=ENTRIES, since_ns=st.integers(0, 200))
def test_no_gap_is_lost_and_none_is_moved_over_a_boundary(entries, since_ns):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_gaps, "_BUFFER", 16)
        patch.setattr(token_gaps, "_CHUNKS", 8)
        gaps, naive = fill(entries, since_ns)
        kept = [(gap, count) for end_ns, gap, count in naive if end_ns > since_ns]
        expected = [gap for gap, count in kept for _ in range(count)]
        chunks = gaps.chunks()
        assert sorted(expand(chunks)) == sorted(expected)
        # Chunks are consecutive stretches of the run: each holds what comes next in time.
        position = 0
        for chunk in chunks:
            size = int(chunk.counts.sum())
            assert sorted(expand([chunk])) == sorted(expected[position : position + size])
            position += size
        assert len(chunks) <= 8 + 2
        parts = split(chunks, 3)
        assert len(parts) == 3
        assert sorted(expand(parts)) == sorted(expected)


@settings(deadline=None, derandomize=True)
@given(entries=ENTRIES, since_ns=st.integers(0, 50))
def test_steps_one_by_one_leave_the_same_chunks_as_steps_together(entries, since_ns):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_gaps, "_BUFFER", 16)
        patch.setattr(token_gaps, "_CHUNKS", 8)
        together, naive = fill(entries, since_ns)
        singly = TokenGaps(since_ns)
        for end_ns, gap_ns, count in naive:
            singly.add(end_ns, gap_ns, count)
        for one, other in zip(together.chunks(), singly.chunks(), strict=True):
            assert (one.gaps_ns.tolist(), one.counts.tolist()) == (other.gaps_ns.tolist(), other.counts.tolist())


@pytest.mark.usefixtures("small_buffer")
def test_chunks_cover_equally_many_entries_and_stay_few():
    gaps = TokenGaps()
    for step in range(1000):
        gaps.add(step + 1, 1 + step % 7, 1)
    sizes = [int(chunk.counts.sum()) for chunk in gaps.chunks()]
    assert sum(sizes) == 1000
    assert len(set(sizes[:-1])) == 1
    assert len(sizes) <= 8 + 2


def test_what_ends_in_the_warm_up_is_left_out():
    gaps = TokenGaps(since_ns=10)
    gaps.add(10, 3, 5)
    gaps.add(11, 4, 5)
    gaps.add(20, 6, 0)
    assert expand(gaps.chunks()) == [4] * 5


def test_equal_gaps_are_merged():
    gaps = TokenGaps()
    gaps.add_steps(0, [5, 3, 5], 2)
    whole = merged(gaps.chunks())
    assert (whole.gaps_ns.tolist(), whole.counts.tolist()) == ([3, 5], [2, 4])
