"""Max-min fair shares against cases solved by hand, and against what defines them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.service.links import max_min_rates


@pytest.mark.parametrize(
    ("routes", "links", "rates"),
    [
        ([["a"]], {"a": 10.0}, [10.0]),
        ([["a"], ["a"]], {"a": 10.0}, [5.0, 5.0]),
        # Bertsekas and Gallager, figure 6.10: one long route over links that others use alone.
        ([["a", "b"], ["a"], ["b"]], {"a": 1.0, "b": 1.0}, [0.5, 0.5, 0.5]),
        # The long route is held back by b, so that a has more to give to the other.
        ([["a", "b"], ["a"], ["b"], ["b"]], {"a": 9.0, "b": 6.0}, [2.0, 7.0, 2.0, 2.0]),
        # Three levels: c is full first at 1, then b at 3, then a at 6.
        ([["a"], ["a", "b"], ["b", "c"], ["c"]], {"a": 9.0, "b": 4.0, "c": 2.0}, [6.0, 3.0, 1.0, 1.0]),
        # Incast: four senders with NICs of their own into one receiver.
        ([[f"out{k}", "in"] for k in range(4)], {**{f"out{k}": 50.0 for k in range(4)}, "in": 50.0}, [12.5] * 4),
        ([[]], {}, [float("inf")]),
        ([], {}, []),
    ],
)
def test_hand_solved_cases(routes, links, rates):
    assert max_min_rates(routes, links) == pytest.approx(rates)


@given(st.data())
def test_each_rate_is_bounded_by_a_full_link_on_which_it_is_the_greatest(data):
    links = data.draw(st.dictionaries(st.integers(0, 5), st.floats(0.5, 100.0), min_size=1))
    routes = data.draw(st.lists(st.lists(st.sampled_from(sorted(links)), min_size=1, unique=True), max_size=8))
    rates = max_min_rates(routes, links)
    used = {link: sum(rate for rate, route in zip(rates, routes, strict=True) if link in route) for link in links}
    for link, capacity in links.items():
        assert used[link] <= capacity * (1 + 1e-9)
    for rate, route in zip(rates, routes, strict=True):
        assert any(
            used[link] == pytest.approx(links[link])
            and all(other <= rate * (1 + 1e-9) for other, way in zip(rates, routes, strict=True) if link in way)
            for link in route
        )
