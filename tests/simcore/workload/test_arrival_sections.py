"""Arrivals and lengths as scenarios write them."""

import numpy as np
import pytest

from servetwin import simulate
from servetwin.api import prepare
from simcore.core.errors import InputError

DAY = [1.0] * 12 + [20.0] * 12
BASE = {"model": "smollm2-135m", "cluster": {"accelerator": "h100-sxm"}}
LENGTHS = {"prompt_tokens": {"name": "fixed", "tokens": 20}, "output_tokens": {"name": "fixed", "tokens": 3}}


def workload(arrivals, **others):
    return BASE | {"workload": {"requests": 2000, "arrivals": arrivals} | (others or LENGTHS)}


def arrivals_s(arrivals):
    batches = list(prepare(workload(arrivals)).workload.batches())
    return np.concatenate([batch.arrival_ns for batch in batches]) / 1e9


def test_a_day_begins_at_its_hour():
    daily = {"name": "daily", "rates_per_s": DAY, "day_s": 240.0}
    night, noon = arrivals_s(daily), arrivals_s(daily | {"start_hour": 12})
    assert np.count_nonzero(night < 120.0) == pytest.approx(120, abs=40)
    assert np.count_nonzero(noon < 120.0) == pytest.approx(2000, abs=200)


def test_rates_by_stretch():
    rates = [{"from_s": 0, "rate_per_s": 100}, {"from_s": 10, "rate_per_s": 1}]
    seconds = arrivals_s({"name": "piecewise", "rates": rates})
    assert np.count_nonzero(seconds < 10.0) == pytest.approx(1000, abs=120)


@pytest.mark.parametrize(
    ("arrivals", "said"),
    [
        ({"name": "piecewise", "rates": []}, "workload.arrivals.rates"),
        ({"name": "piecewise", "rates": [{"from_s": 1, "rate_per_s": 1}]}, "from_s that begin with 0 and rise"),
        ({"name": "piecewise", "rates": [{"from_s": 0, "rate_per_s": 0}]}, "a last rate_per_s above 0, or period_s"),
        ({"name": "piecewise", "rates": [{"from_s": 0, "rate_per_s": 0}], "period_s": 1}, "some rate_per_s above 0"),
        (
            {
                "name": "piecewise",
                "rates": [{"from_s": 0, "rate_per_s": 1}, {"from_s": 5, "rate_per_s": 1}],
                "period_s": 5,
            },
            "a period_s above the last from_s, 5",
        ),
        ({"name": "daily", "rates_per_s": [1.0] * 23}, "at least 24 items"),
        ({"name": "daily", "rates_per_s": [0.0] * 24}, "some rate above 0"),
    ],
)
def test_wrong_arrivals_are_told(arrivals, said):
    with pytest.raises(InputError, match=said):
        prepare(workload(arrivals))


def test_all_at_once_need_a_number():
    without = workload({"name": "at-once"})
    without["workload"] = {**without["workload"], "requests": None, "duration_s": 5.0}
    with pytest.raises(InputError, match="so short that at most"):
        prepare(without)
    assert set(arrivals_s({"name": "at-once"})) == {0.0}


@pytest.mark.parametrize("arrivals", [{"name": "closed-loop", "concurrency": 2}, {"name": "at-once"}])
def test_lengths_come_in_order_and_begin_again(arrivals, tmp_path):
    listed = {"name": "list", "tokens": [[30, 2], [10, 5], [20, 1]]}
    (tmp_path / "l.csv").write_text("prompt_tokens,output_tokens\n30,2\n10,5\n20,1\n")
    in_file = {"name": "empirical", "file": "l.csv", "order": "file"}
    for lengths in (listed, in_file):
        document = workload(arrivals, lengths=lengths)
        document["workload"]["requests"] = 7
        requests = simulate(document, base_dir=tmp_path).requests
        assert requests["prompt_tokens"].tolist() == [30, 10, 20, 30, 10, 20, 30]
        assert requests["output_tokens"].tolist() == [2, 5, 1, 2, 5, 1, 2]


def test_blocks_may_be_large():
    document = workload({"name": "at-once"}) | {"memory": {"block_size_tokens": 1024}}
    assert simulate(document, overrides=["workload.requests=9"]).summary["counts"]["finished"] == 9
