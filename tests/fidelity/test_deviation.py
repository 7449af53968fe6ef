import pytest
from hypothesis import given
from hypothesis import strategies as st

from fidelity.case import Case, Outcome
from fidelity.deviation import Coverage, coverage, deviation, deviation_of, grouped
from fidelity.worst import common_traits, worst

KEY = "ttft_s.mean"


def outcome(error, band=None, **labels):
    case = Case(str(error), labels, {}, {KEY: 2.0})
    return Outcome(case, {KEY: 2.0 * (1 + error)}, {}, {} if band is None else {KEY: band})


def test_errors_are_relative_to_what_was_measured():
    found = deviation([outcome(-0.5), outcome(0.1), outcome(-0.2)], KEY)
    assert found is not None
    assert (found.cases, found.median, found.bias) == pytest.approx((3, 0.2, -0.2))
    assert found.mean == pytest.approx(0.8 / 3)
    assert found.covered is None


def test_coverage_is_over_the_cases_with_a_band():
    found = deviation([outcome(0.1, (1.0, 3.0)), outcome(0.1, (2.1, 3.0)), outcome(0.1)], KEY)
    assert found is not None
    assert found.covered == 0.5


def test_measured_values_lie_below_inside_or_above():
    bands = [(1.0, 3.0), (2.1, 4.2), (2.0, 2.0), (0.5, 1.0)]
    found = coverage([outcome(0.1), *(outcome(0.1, band) for band in bands)], KEY)
    assert found == Coverage(4, 0.25, 0.5, 0.25, 2.0)
    assert coverage([outcome(0.1)], KEY) is None


def test_a_figure_that_no_run_has_has_no_deviation():
    missing = Outcome(Case("none", {}, {}, {KEY: 2.0}), {KEY: None}, {})
    assert deviation([missing], KEY) is None
    assert worst([missing], KEY) == []


@given(st.lists(st.floats(-1, 100), min_size=1))
def test_median_and_p90_are_ordered_and_bias_is_never_beyond_the_largest(errors):
    found = deviation_of(errors)
    largest = max(map(abs, errors))
    assert found.median <= found.p90 <= largest
    assert abs(found.bias) <= largest


def test_groups_of_numbers_come_in_order_of_size():
    assert list(grouped([outcome(0, c="16"), outcome(0, c="4"), outcome(0, c="128")], "c")) == ["4", "16", "128"]


def test_what_the_worst_have_in_common_is_what_the_others_have_not():
    bad = [outcome(2.0 + n, gpu="x", model="m") for n in range(3)]
    good = [outcome(0.01 * n, gpu="y", model="m") for n in range(9)]
    chosen = worst([*good, *bad], KEY, 3)
    assert [o.case.name for o in chosen] == ["4.0", "3.0", "2.0"]
    (trait,) = common_traits(chosen, [*good, *bad])
    assert (trait.label, trait.value, trait.among_worst, trait.among_all) == ("gpu", "x", 1.0, 0.25)
