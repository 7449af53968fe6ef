"""A scenario from a link may name no file but the traces that the dashboard has, and no more than a page can check."""

from pathlib import Path

import pytest

from dashboard.what_if.setups import default_pair, with_value
from dashboard.what_if.trust import MOST_REQUESTS, trusted
from simcore.core.errors import InputError

KNOWN = {"mine.csv": Path("/kept/mine.csv")}
DOCUMENT = default_pair().document("A")


def changed(path, value):
    return with_value(DOCUMENT, path, value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model", "/etc/passwd"),
        ("model", "../config.json"),
        ("cluster.accelerator", "/tmp/my-gpu.yaml"),
        ("pricing.profile", "/tmp/profile"),
        ("workload", {"trace": "/etc/passwd"}),
        ("workload", {"streams": [{"trace": "../../secrets.csv"}]}),
        ("workload.lengths", {"name": "empirical", "file": "/etc/passwd"}),
    ],
)
def test_other_files_are_refused(path, value):
    with pytest.raises(InputError, match="expected one of"):
        trusted(changed(path, value), KNOWN)


def test_traces_that_are_there_are_found():
    assert trusted(changed("workload", {"trace": "mine.csv"}), KNOWN)["workload"] == {"trace": "/kept/mine.csv"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("workload.requests", MOST_REQUESTS + 1),
        ("workload.requests", 1e30),
        ("workload", {"duration_s": 1e6, "arrivals": {"name": "poisson", "rate_per_s": 10.0}}),
        ("workload", {"streams": [{"requests": 10**9}]}),
        ("workload", {"requests": 1000, "samples": 1000}),
    ],
)
def test_more_requests_than_a_page_can_check_are_refused(path, value):
    with pytest.raises(InputError, match="servetwin run takes more"):
        trusted(changed(path, value), KNOWN)


@pytest.mark.parametrize("wrong", [None, 3, [], "x", {"requests": "many"}, {"arrivals": 3}])
def test_what_no_schema_allows_is_left_to_the_schema(wrong):
    assert trusted({**DOCUMENT, "workload": wrong}, KNOWN)["workload"] == wrong
    assert trusted({"model": wrong if wrong != "x" else None, "cluster": wrong, "pricing": wrong}, KNOWN)
