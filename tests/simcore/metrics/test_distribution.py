import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.token_gaps import CountedGaps
from simcore.metrics.distribution import cumulative_points, cumulative_points_of_gaps, cumulative_ranks


def test_ranks_are_few_and_keep_both_ends():
    assert cumulative_ranks(5).tolist() == [0, 1, 2, 3, 4]
    ranks = cumulative_ranks(10**6)
    assert len(ranks) < 1000
    assert (ranks[0], ranks[-1], ranks[-2]) == (0, 999_999, 999_998)


def test_points_lie_where_percentiles_do():
    values = np.random.default_rng(3).exponential(size=5000)
    points = cumulative_points(values)
    assert len(points["value_s"]) < 1000
    for share, value in zip(points["share"], points["value_s"], strict=True):
        assert value == pytest.approx(np.percentile(values, 100 * share))


def test_what_never_came_is_left_out():
    points = cumulative_points(np.array([3.0, np.nan, 1.0]))
    assert (points["value_s"].tolist(), points["share"].tolist()) == ([1.0, 3.0], [0.0, 1.0])


@settings(deadline=None, derandomize=True)
@given(st.dictionaries(st.integers(1, 10**12), st.integers(1, 40), max_size=50))
def test_counted_gaps_are_distributed_as_the_gaps_one_by_one(counts):
    gaps = sorted(counts)
    counted = CountedGaps(np.array(gaps, dtype=np.int64), np.array([counts[gap] for gap in gaps], dtype=np.int64))
    found = cumulative_points_of_gaps(counted)
    expected = cumulative_points(np.repeat(counted.gaps_ns, counted.counts) / 1e9)
    assert found["value_s"].tolist() == expected["value_s"].tolist()
    assert found["share"].tolist() == expected["share"].tolist()
