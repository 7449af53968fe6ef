import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.token_gaps import CountedGaps, merged
from simcore.metrics import confidence, statistics
from simcore.metrics.definitions import PERCENTILES

NAMES = ("mean", *PERCENTILES)
RANKS = list(PERCENTILES.values())


def counted(pairs):
    gaps_ns, counts = zip(*pairs, strict=True) if pairs else ((), ())
    return CountedGaps(np.array(gaps_ns, dtype=np.int64), np.array(counts, dtype=np.int64))


def of_gaps(gaps, requests=1000):
    return statistics.of_gaps(gaps, merged([chunk for chunks in gaps for chunk in chunks]), requests)


ENTRIES = st.lists(st.tuples(st.integers(1, 5_000_000_000), st.integers(1, 40)), max_size=30)


# A replica has one chunk until its buffer is full, from then on more than there are sections.
CHUNKS = st.one_of(st.lists(ENTRIES, min_size=1, max_size=1), st.lists(ENTRIES, min_size=20, max_size=24))


@settings(deadline=None, derandomize=True)
@given(replicas=st.lists(CHUNKS, min_size=1, max_size=3))
def test_statistics_of_counted_gaps_are_those_of_the_gaps_one_by_one(replicas):
    gaps = [[counted(entries) for entries in chunks] for chunks in replicas]
    expanded = [gap for chunks in replicas for entries in chunks for gap, count in entries for _ in range(count)]
    found = of_gaps(gaps)
    assert found["count"] == len(expanded)
    if not expanded:
        assert [found[name] for name in (*NAMES, "min", "max")] == [None] * 8
        return
    seconds = np.array(expanded) / 1e9
    expected = [seconds.mean(), *np.percentile(seconds, RANKS), seconds.min(), seconds.max()]
    assert [found[name] for name in (*NAMES, "min", "max")] == pytest.approx(expected, rel=1e-12)


def test_the_mean_of_gaps_is_exact_where_their_sum_is_beyond_64_bits():
    huge = counted([(2**62, 5), (2**62 + 2, 5)])
    assert of_gaps([[huge]])["mean"] == (2**62 + 1) / 1e9


def test_the_interval_of_gaps_comes_from_their_order_in_time():
    """Gaps that rise steadily: sections are the twentieths of the run, so their means spread as widely as the gaps."""
    rising = counted([(gap, 1) for gap in range(1, 20_001)])
    low, high = of_gaps([[rising]])["ci"]["mean"]
    spread = np.std(np.arange(500.5, 20_000, 1000), ddof=1) / np.sqrt(20) * 2.093
    assert (high - low) / 2 * 1e9 == pytest.approx(spread, rel=1e-3)
    assert (high + low) / 2 * 1e9 == pytest.approx(10_000.5)


@pytest.mark.parametrize(("requests", "known"), [(39, False), (40, True)])
def test_gaps_of_few_requests_have_no_interval_however_many_they_are(requests, known):
    found = of_gaps([[counted([(gap, 1) for gap in range(1, 20_001)])]], requests)
    assert found["count"] == 20_000
    assert [found["ci"][name] is not None for name in ("mean", "p50", "p99")] == [known] * 3


@settings(deadline=None, derandomize=True)
@given(st.lists(st.one_of(st.floats(0, 1e6), st.just(np.nan)), max_size=80))
def test_statistics_of_values_leave_out_what_is_undefined(values):
    found = statistics.of_values(np.array(values, dtype=np.float64))
    defined = np.array([value for value in values if not np.isnan(value)])
    assert found["count"] == len(defined)
    if len(defined):
        expected = [defined.mean(), *np.percentile(defined, RANKS), defined.min(), defined.max()]
        assert [found[name] for name in (*NAMES, "min", "max")] == pytest.approx(expected, rel=1e-12)
    else:
        assert [found[name] for name in (*NAMES, "min", "max")] == [None] * 8
        assert [found["ci"][name] for name in NAMES] == [None] * 6


@pytest.mark.parametrize("figure", ["mean", "p50", "p90"])
def test_intervals_hold_the_truth_19_times_in_20(figure):
    """Independent normals: of 1000 intervals 950 should hold it, give or take 3 standard deviations (of 7)."""
    random, runs = np.random.default_rng(7), 1000
    truth = 10 + {"mean": 0.0, "p50": 0.0, "p90": 1.2815515655446004}[figure]
    hits = 0
    for _ in range(runs):
        low, high = statistics.of_values(random.normal(10.0, 1.0, 4000))["ci"][figure]
        hits += low <= truth <= high
    assert 0.93 * runs <= hits <= 0.97 * runs


def test_an_interval_needs_enough_observations():
    values = np.random.default_rng(1).random
    assert statistics.of_values(values(39))["ci"]["mean"] is None
    few = statistics.of_values(values(40))["ci"]
    assert few["mean"] is not None
    assert few["p50"] is None
    many = statistics.of_values(values(10_000))["ci"]
    assert many["p99"] is not None
    assert many["p999"] is None


def test_the_interval_is_students_t_about_the_whole():
    low, high = confidence.interval(5.0, [4.0, 6.0] * 10)
    assert (low + high) / 2 == pytest.approx(5.0)
    assert high - 5.0 == pytest.approx(2.0930240544 * np.sqrt(20 / 19 / 20))
    assert confidence.interval(5.0, []) is None
    assert confidence.interval(5.0, [5.0, np.nan]) is None
