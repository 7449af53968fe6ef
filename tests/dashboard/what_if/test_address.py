"""Setups in a link come back as they were; anything else is refused in a sentence, and nothing of it is run."""

import json
import zlib
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.what_if.address import LONGEST_TEXT, decoded, encoded
from dashboard.what_if.setups import Pair, default_pair
from simcore.core.errors import InputError

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
SECTIONS = st.dictionaries(st.text(), PLAIN, max_size=3)


def packed(value):
    return urlsafe_b64encode(zlib.compress(json.dumps(value).encode())).decode().rstrip("=")


@given(SECTIONS, SECTIONS, SECTIONS)
def test_setups_come_back_as_they_were(shared, a, b):
    pair = Pair(shared, a, b)
    assert decoded(encoded(pair)) == pair


def test_a_link_is_short():
    assert len(encoded(default_pair())) < 600


@pytest.mark.parametrize(
    "text",
    [
        "",
        "!!!",
        "abc",
        encoded(default_pair())[:-9],
        packed([1]),
        packed({"a": {}}),
        packed({"shared": [], "a": {}, "b": {}}),
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(InputError, match=r"^the address"):
        decoded(text)


def test_what_unpacks_to_more_than_its_bound_is_refused():
    bomb = packed({"shared": {"x": "0" * 5_000_000}, "a": {}, "b": {}})
    assert len(bomb) < LONGEST_TEXT
    with pytest.raises(InputError, match="the address is broken"):
        decoded(bomb)


def test_setups_too_long_for_a_link_are_refused():
    noise = {str(place): hash(str(place)) for place in range(2000)}
    with pytest.raises(InputError, match="too long"):
        encoded(Pair(noise, {}, {}))
    with pytest.raises(InputError, match="too long"):
        decoded("A" * (LONGEST_TEXT + 1))
