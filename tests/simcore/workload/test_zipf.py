"""Choices by popularity, without replacement."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.workload.zipf import ZipfChoice


@given(st.integers(1, 40), st.floats(0, 10), st.integers(0, 2**32), st.data())
def test_choices_are_different_and_as_many_as_asked(among, exponent, seed, data):
    counts = np.array(data.draw(st.lists(st.integers(0, min(among, 8)), min_size=1, max_size=20)), dtype=np.int64)
    uniform = np.random.default_rng(seed).random((len(counts), 8))
    uniform[::3] = 1 - 2**-53
    chosen = ZipfChoice(among, exponent).distinct(uniform, counts)
    for row, count in zip(chosen.tolist(), counts.tolist(), strict=True):
        assert len(set(row[:count])) == count
        assert all(0 <= choice < among for choice in row[:count])
        assert row[count:] == [-1] * (8 - count)


def test_the_first_choice_follows_zipfs_law():
    uniform = np.random.default_rng(0).random((100_000, 1))
    chosen = ZipfChoice(50, 1.2).distinct(uniform, np.ones(100_000, dtype=np.int64))[:, 0]
    shares = np.arange(1, 51) ** -1.2
    shares /= shares.sum()
    counts = np.bincount(chosen, minlength=50)
    assert np.all(np.abs(counts - 1e5 * shares) < 5 * np.sqrt(1e5 * shares))


def test_later_choices_are_drawn_from_what_remains():
    uniform = np.random.default_rng(0).random((100_000, 2))
    chosen = ZipfChoice(3, 1.0).distinct(uniform, np.full(100_000, 2))
    p = np.array([6, 3, 2]) / 11
    for first in range(3):
        second = chosen[chosen[:, 0] == first, 1]
        for other in {0, 1, 2} - {first}:
            assert np.mean(second == other) == pytest.approx(p[other] / (1 - p[first]), abs=0.015)
