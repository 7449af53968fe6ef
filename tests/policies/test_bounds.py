"""No policy takes a number that cannot be meant, and each says which it takes."""

from functools import cache

import pytest

from policies.bounds import check_value
from policies.registry import KINDS, built_in_names
from simcore.core.errors import ServetwinError
from simcore.scenario.policy_choice import complete_policy

UNSTATED = {"ageing_s", "long_prefill_threshold_tokens", "tpot_target_s"}
"""Numbers whose default is None."""
BEYOND = (10**400, -(10**400), 10**18, 1e300, float("inf"), float("nan"))


@cache
def numbers():
    """Every parameter that is a number, of every built-in policy."""
    found = [
        (kind, name, key)
        for kind in KINDS
        for name in built_in_names(kind)
        for key, value in complete_policy(kind, {"name": name}, kind).items()
        if key in UNSTATED or (isinstance(value, int | float) and not isinstance(value, bool))
    ]
    assert len(found) > 60
    return found


@pytest.mark.parametrize(("kind", "name", "key"), numbers())
def test_numbers_beyond_a_range_are_refused_in_one_sentence(kind, name, key):
    for value in BEYOND:
        if key == "seed" and value == 10**18:
            continue
        with pytest.raises(ServetwinError, match=rf"^{kind}\.(low|{key}) is .{{1,150}}, expected [^\n]*\.$"):
            complete_policy(kind, {"name": name, key: value}, kind)


@pytest.mark.parametrize(("kind", "name", "key"), [item for item in numbers() if item[2] != "kendall_tau"])
def test_none_takes_a_negative_number(kind, name, key):
    with pytest.raises(ServetwinError, match="expected"):
        complete_policy(kind, {"name": name, key: -1}, kind)


@pytest.mark.parametrize(
    ("kind", "section", "said"),
    [
        ("ordering", {"name": "edf", "ttft_s_by_priority": {-1: 2.0}}, "names the level -1, expected levels from 0"),
        (
            "ordering",
            {"name": "edf", "ttft_s_by_priority": {1: 1e12}},
            r"ttft_s_by_priority\.1 is 1000000000000\.0, expected",
        ),
        ("ordering", {"name": "priority", "minimum_share": {-2: 0.5}}, "names the level -2, expected levels from 0"),
        ("ordering", {"name": "priority", "minimum_share": {10**400: 0.5}}, "the level a number beyond all bounds"),
        ("ordering", {"name": "credit", "credits": {"a": 1e300}}, r"credits\.a is 1e\+300, expected"),
        ("ordering", {"name": "credit", "window_s": 1e-300}, "window_s is 1e-300, expected a number from 1e-09 to"),
        ("ordering", {"name": "vtc", "weights": {"a": 1e-9}}, r"weights\.a is 1e-09, expected a number from 1e-06"),
        ("batching", {"name": "bucketed", "edges_tokens": [-5, 10]}, r"edges_tokens\.0 is -5, expected a whole number"),
        ("batching", {"name": "bucketed", "edges_tokens": [5, 10**400]}, r"edges_tokens\.1 is a number beyond all"),
    ],
)
def test_numbers_within_lists_and_mappings_are_checked_too(kind, section, said):
    with pytest.raises(ServetwinError, match=said):
        complete_policy(kind, section, kind)


def test_a_range_includes_its_ends_and_none_is_not_a_number():
    for value in (None, 1, 64):
        check_value("levels", value, 1, 64)
    with pytest.raises(ValueError, match=r"^levels is 65, expected a whole number from 1 to 64$"):
        check_value("levels", 65, 1, 64)
