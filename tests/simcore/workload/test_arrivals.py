import numpy as np
import pytest

from simcore.workload.arrivals import AtOnce, Constant, Gamma, OnOff, Piecewise, Poisson
from simcore.workload.streams import random_stream

COUNT = 200_000


def arrivals_s(process, count=COUNT, seed=1):
    return process.seconds_at(np.cumsum(process.unit_gaps(random_stream(seed, "arrivals"), count)))


def test_constant_arrivals_come_after_each_gap():
    assert arrivals_s(Constant(4.0), 3) == pytest.approx([0.25, 0.5, 0.75])


@pytest.mark.parametrize(("process", "cv"), [(Poisson(10.0), 1.0), (Gamma(10.0, 3.0), 3.0), (Gamma(10.0, 0.2), 0.2)])
def test_gaps_have_the_stated_mean_and_variation(process, cv):
    gaps = np.diff(arrivals_s(process), prepend=0.0)
    standard_error = cv / np.sqrt(COUNT)
    assert gaps.mean() * 10.0 == pytest.approx(1.0, abs=5 * standard_error)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.03)


def test_poisson_counts_have_unit_dispersion():
    counts = np.bincount(arrivals_s(Poisson(10.0)).astype(int))[:-1]
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.05)


def test_on_off_keeps_each_phase_at_its_rate():
    process = OnOff(on_rate_per_s=50.0, off_rate_per_s=5.0, on_s=2.0, off_s=6.0)
    seconds = arrivals_s(process)
    in_period = seconds % 8.0
    periods = seconds[-1] / 8.0
    assert np.count_nonzero(in_period < 2.0) / periods == pytest.approx(100.0, rel=0.01)
    assert np.count_nonzero(in_period >= 2.0) / periods == pytest.approx(30.0, rel=0.02)


def test_silent_off_phases_have_no_arrivals():
    seconds = arrivals_s(OnOff(on_rate_per_s=50.0, off_rate_per_s=0.0, on_s=1.0, off_s=9.0), 10_000)
    # An arrival may fall on the very end of a phase, up to the last bits of a float.
    assert np.max(seconds % 10.0) < 1.0 + 1e-6
    assert np.all(np.diff(seconds) >= 0)


def test_equal_phases_are_a_poisson_process():
    assert arrivals_s(OnOff(10.0, 10.0, 3.0, 4.0), 1000) == pytest.approx(arrivals_s(Poisson(10.0), 1000))


def test_rates_share_their_draws():
    assert arrivals_s(Poisson(10.0), 100) * 2.0 == pytest.approx(arrivals_s(Poisson(5.0), 100))


def test_at_once_is_at_time_zero():
    assert np.array_equal(arrivals_s(AtOnce(), 100), np.zeros(100))


def test_every_piece_has_its_rate_and_the_last_one_lasts():
    seconds = arrivals_s(Piecewise((0.0, 100.0, 300.0), (50.0, 0.0, 5.0)), 20_000)
    assert np.count_nonzero(seconds < 100.0) == pytest.approx(5000, rel=0.05)
    assert not np.count_nonzero((seconds > 100.0 + 1e-6) & (seconds < 300.0))
    assert np.count_nonzero(seconds > 300.0) / (seconds[-1] - 300.0) == pytest.approx(5.0, rel=0.03)


def test_pieces_repeat():
    repeating = Piecewise((0.0, 2.0), (50.0, 5.0), period_s=8.0)
    assert arrivals_s(repeating, 1000) == pytest.approx(arrivals_s(OnOff(50.0, 5.0, 2.0, 6.0), 1000))


def test_one_piece_is_a_poisson_process():
    assert arrivals_s(Piecewise((0.0,), (10.0,)), 1000) == pytest.approx(arrivals_s(Poisson(10.0), 1000))
