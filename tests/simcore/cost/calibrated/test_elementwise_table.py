import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.cost.calibrated import ErrorQuantiles, load_profile
from simcore.cost.calibrated.elementwise import ELEMENTWISE_KEYS, ElementwiseTable
from simcore.cost.calibrated.table import KernelTable

ALL = ErrorQuantiles(1, 0.1, 0.2, 0.0, (0.0,) * 7)
NORM = ErrorQuantiles(1, 0.01, 0.02, 0.0, (0.0,) * 7)
TABLE = ElementwiseTable(
    KernelTable(
        ELEMENTWISE_KEYS,
        [("norm", 1000), ("norm", 4000), ("activation", 2000)],
        np.array([1.0, 10.0, 100.0]),
        np.array([[2.0, 3.0, 9.0], [3.0, 5.0, np.nan], [2.0, 2.0, 4.0]]) * 1e-6,
    ),
    {"all": ALL, "norm": NORM},
)
PRO = load_profile("rtx-pro-6000-blackwell", "vllm-0.19.0").elementwise


def test_a_measured_width_is_priced_by_the_bytes_of_a_launch():
    price = TABLE.price("norm", 1000)
    assert price.seconds(10_000) == pytest.approx(3e-6)
    assert price.seconds(1) == pytest.approx(2e-6)
    assert [price.inside(moved) for moved in (999, 1000, 100_000, 100_001)] == [False, True, True, False]
    assert price.errors == NORM
    assert TABLE.price("norm", 4000).curve.last == 40_000


@pytest.mark.parametrize(("width", "nearest"), [(10, 1000), (1999, 1000), (2001, 4000), (1e6, 4000)])
def test_other_widths_take_the_nearest_and_count_as_extrapolated(width, nearest):
    price = TABLE.price("norm", width)
    assert price.curve is TABLE.price("norm", nearest).curve
    assert not price.inside(10_000)


def test_errors_are_those_of_the_kind_where_the_operator_has_none():
    assert TABLE.price("activation", 2000).errors == ALL
    assert TABLE.price("query_key_norm", 2000) is None


@given(
    st.sampled_from(["norm", "query_key_norm", "activation"]),
    st.floats(64, 1e6),
    st.tuples(st.integers(1, 1 << 28), st.integers(1, 1 << 28)).map(sorted),
)
def test_more_bytes_never_take_less(operator, width, moved):
    price = PRO.price(operator, width)
    assert price.seconds(moved[0]) <= price.seconds(moved[1])
