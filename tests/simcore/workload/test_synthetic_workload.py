from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.errors import InputError
from simcore.core.validation import explain
from simcore.workload import ClosedLoop, WorkloadConfig, build_workload
from simcore.workload.arrivals import AtOnce, Constant, Gamma, OnOff, Piecewise, Poisson
from simcore.workload.lengths import Lognormal, Uniform
from simcore.workload.pairs import CorrelatedPairs, IndependentPairs
from simcore.workload.synthetic import SyntheticOpenLoop

POISSON = {"name": "poisson", "rate_per_s": 10.0}
LENGTHS = {
    "prompt_tokens": {"name": "lognormal", "median": 1000, "sigma": 0.7},
    "output_tokens": {"name": "uniform", "low": 1, "high": 400},
}


class Scenario(pydantic.BaseModel):
    workload: WorkloadConfig


def build(seed: int = 0, base_dir: Path = Path(), **workload: Any):
    return build_workload(Scenario(workload=workload).workload, seed, base_dir)


def columns(workload) -> np.ndarray:
    batches = [np.array([b.arrival_ns, b.prompt_tokens, b.output_tokens]) for b in workload.batches()]
    return np.concatenate(batches, axis=1)


rates = st.floats(0.01, 1e5)
processes = st.one_of(
    st.builds(Constant, rates),
    st.builds(Poisson, rates),
    st.builds(Gamma, rates, st.floats(0.01, 100)),
    st.just(AtOnce()),
    st.builds(Piecewise, st.just((0.0, 1.0, 5.0)), st.tuples(rates, st.just(0.0), rates), st.sampled_from((None, 9.0))),
    st.builds(OnOff, rates, st.one_of(st.just(0.0), rates), st.floats(0.001, 100), st.floats(0.001, 100)),
)
length_pairs = st.sampled_from(
    [
        IndependentPairs(Lognormal(500.0, 1.0, 1, 8000), Uniform(1, 300)),
        CorrelatedPairs(Lognormal(500.0, 1.0, 1, 8000), Uniform(1, 300), 0.5),
    ]
)


@settings(deadline=None, max_examples=50)
@given(processes, length_pairs, st.integers(0, 2**63), st.integers(1, 300), st.integers(1, 400))
def test_requests_are_in_order_and_do_not_depend_on_batches(process, pairs, seed, requests, batch_requests):
    whole = columns(SyntheticOpenLoop(process, pairs, seed, requests))
    parts = columns(SyntheticOpenLoop(process, pairs, seed, requests, batch_requests=batch_requests))
    assert whole.shape == (3, requests)
    assert np.array_equal(whole, parts)
    assert (np.diff(whole[0]) >= 0).all()
    assert (whole[0] >= 0).all()
    assert (whole[1:] >= 1).all()


@settings(deadline=None, max_examples=25)
@given(st.floats(0.5, 20.0), st.integers(1, 50), st.integers(0, 100))
def test_a_duration_cuts_the_same_requests(duration_s, batch_requests, seed):
    pairs = IndependentPairs(Uniform(1, 9), Uniform(1, 9))
    duration_ns = round(duration_s * 1e9)
    by_time = SyntheticOpenLoop(Poisson(20.0), pairs, seed, duration_ns=duration_ns, batch_requests=batch_requests)
    by_count = columns(SyntheticOpenLoop(Poisson(20.0), pairs, seed, requests=2000))
    expected = by_count[:, by_count[0] < duration_ns]
    batches = list(by_time.batches())
    assert sum(len(batch) for batch in batches) == expected.shape[1]
    if batches:
        assert np.array_equal(columns(by_time), expected)


def test_same_seed_same_requests_and_iterating_again():
    workload = build(seed=3, requests=2000, arrivals=POISSON, **LENGTHS)
    again = build(seed=3, requests=2000, arrivals=POISSON, **LENGTHS)
    other = build(seed=4, requests=2000, arrivals=POISSON, **LENGTHS)
    assert columns(workload).tobytes() == columns(workload).tobytes() == columns(again).tobytes()
    assert not np.array_equal(columns(workload), columns(other))


def test_the_arrival_rate_leaves_lengths_and_draws_alone():
    slow = columns(build(requests=500, arrivals=POISSON, **LENGTHS))
    fast = columns(build(requests=500, arrivals={"name": "poisson", "rate_per_s": 20.0}, **LENGTHS))
    assert np.array_equal(slow[1:], fast[1:])
    assert np.abs(slow[0] - 2 * fast[0]).max() <= 2  # rounding to nanoseconds


def test_batches_cover_a_long_workload():
    workload = build(requests=150_000, arrivals=POISSON, **LENGTHS)
    batches = list(workload.batches())
    assert [len(batch) for batch in batches] == [65_536, 65_536, 18_928]
    assert all(one.arrival_ns[-1] <= next_one.arrival_ns[0] for one, next_one in pairwise(batches))


def test_closed_loop():
    arrivals = {"name": "closed-loop", "concurrency": 16, "think_time_s": 0.5}
    workload = build(requests=1000, arrivals=arrivals, **LENGTHS)
    assert isinstance(workload, ClosedLoop)
    assert (workload.concurrency, workload.think_time_ns, len(workload.requests)) == (16, 500_000_000, 1000)
    assert not workload.requests.arrival_ns.any()
    open_loop = columns(build(requests=1000, arrivals=POISSON, **LENGTHS))
    assert np.array_equal(workload.requests.prompt_tokens, open_loop[1])


def test_empirical_lengths_come_from_the_file_in_pairs(tmp_path):
    (tmp_path / "lengths.csv").write_text("num_prefill_tokens,num_decode_tokens\n10,1\n20,2\n30,3\n")
    lengths = {"name": "empirical", "file": "lengths.csv", "format": "vidur"}
    requests = columns(build(base_dir=tmp_path, requests=500, arrivals=POISSON, lengths=lengths))
    assert set(zip(*requests[1:].tolist(), strict=True)) == {(10, 1), (20, 2), (30, 3)}


def test_quantiles_in_any_order():
    tokens = {"max": 1000, "p99.9": 900, "p50": 100, "min": 10}
    length = {"name": "quantiles", "tokens": tokens}
    requests = columns(build(requests=20_000, arrivals=POISSON, prompt_tokens=length, output_tokens=length))
    assert np.median(requests[1]) == pytest.approx(100, rel=0.03)
    assert 10 <= requests[1].min() <= requests[1].max() <= 1000


def test_a_duration_without_a_request_is_an_error():
    with pytest.raises(InputError, match=r"workload.duration_s is 0.001, expected long enough"):
        build(duration_s=0.001, arrivals={"name": "constant", "rate_per_s": 1.0}, **LENGTHS)


def test_arrivals_too_rare_for_the_clock_are_an_error():
    with pytest.raises(InputError, match="291 years"):
        build(requests=5, arrivals={"name": "constant", "rate_per_s": 1e-12}, **LENGTHS)


def test_negative_seed():
    with pytest.raises(InputError, match="seed is -1"):
        build(seed=-1, requests=5, arrivals=POISSON, **LENGTHS)


SYNTHETIC = {"requests": 5, "arrivals": POISSON, **LENGTHS}
REJECTED = [
    ({**SYNTHETIC, "requests": 0}, "workload.requests is 0, expected a whole number of at least 1"),
    ({**SYNTHETIC, "requests": True}, "workload.requests is true"),
    ({**SYNTHETIC, "requests": 2.5}, "workload.requests is 2.5"),
    ({**SYNTHETIC, "duration_s": 5.0}, "exactly one of requests and duration_s"),
    ({**LENGTHS, "arrivals": POISSON}, "exactly one of requests and duration_s"),
    ({**SYNTHETIC, "arrivals": {"name": "poison", "rate_per_s": 1.0}}, "Did you mean 'poisson'"),
    ({**SYNTHETIC, "arrivals": {"name": "poisson", "rate_per_s": 0}}, "workload.arrivals.rate_per_s is 0"),
    ({**SYNTHETIC, "arrivals": {"name": "poisson", "rate_per_s": float("nan")}}, "rate_per_s is nan"),
    ({**SYNTHETIC, "arrivals": {"name": "poisson", "rate_per_s": float("inf")}}, "rate_per_s is inf"),
    ({**SYNTHETIC, "arrivals": {"name": "poisson", "rate_per_s": True}}, "rate_per_s is true"),
    ({**SYNTHETIC, "arrivals": {"name": "poisson", "rate": 1.0}}, "Did you mean 'rate_per_s'"),
    ({**SYNTHETIC, "prompt_tokens": {"name": "fixed", "tokens": -3}}, "workload.prompt_tokens.tokens is -3"),
    ({**SYNTHETIC, "prompt_tokens": {"name": "uniform", "low": 9, "high": 3}}, "low no greater than high"),
    ({**SYNTHETIC, "prompt_tokens": {**LENGTHS["prompt_tokens"], "max": 900}}, "min <= median <= max"),
    ({**SYNTHETIC, "prompt_tokens": {"name": "quantiles", "tokens": {"min": 3}}}, "min and max"),
    ({**SYNTHETIC, "prompt_tokens": {"name": "quantiles", "tokens": {"min": 3, "q5": 4, "max": 5}}}, "'q5'"),
    ({**SYNTHETIC, "prompt_tokens": {"name": "quantiles", "tokens": {"min": 3, "max": 2}}}, "do not fall"),
    (
        {**SYNTHETIC, "prompt_tokens": {"name": "quantiles", "tokens": {"min": 3, "p0": 3, "max": 5}}},
        "each quantile once",
    ),
    ({"requests": 5, "arrivals": POISSON}, "either prompt_tokens and output_tokens, or lengths"),
    ({"requests": 5, "arrivals": POISSON, "prompt_tokens": LENGTHS["prompt_tokens"]}, "either prompt_tokens and"),
    ({**SYNTHETIC, "lengths": {"name": "empirical", "file": "a.csv"}}, "either prompt_tokens and"),
    ({**LENGTHS, "duration_s": 5.0, "arrivals": {"name": "closed-loop", "concurrency": 1}}, "requests, not duration_s"),
    ({"trace": "a.csv", "rate_scale": 0}, "workload.rate_scale is 0, expected a number greater than 0"),
    ({"trace": "a.csv", "rate_scale": -1.5}, "workload.rate_scale is -1.5"),
    ({"trace": "a.csv", "window_s": [5, 5]}, "a start before its end"),
    ({"trace": "a.csv", "window_s": [-1, 5]}, "workload.window_s.0 is -1"),
    ({"trace": "a.csv", "format": "azure2032"}, "Did you mean 'azure2023'"),
    ({"trce": "a.csv", "rate_scale": 2.0}, "Did you mean 'trace'"),
    ("a.csv", "workload is 'a.csv', expected a mapping"),
]


@pytest.mark.parametrize(("workload", "sentence"), REJECTED)
def test_bad_input_is_one_sentence(workload, sentence):
    with pytest.raises(pydantic.ValidationError) as caught:
        Scenario(workload=workload)
    assert sentence in str(explain(caught.value, Scenario))


@pytest.mark.parametrize("workload", [SYNTHETIC, {"trace": "a.csv", "window_s": [0, 60], "columns": {"arrival": "t"}}])
def test_a_written_scenario_reads_back(workload):
    scenario = Scenario(workload=workload)
    assert Scenario.model_validate(scenario.model_dump(mode="json", exclude_none=True)) == scenario


def test_a_duration_with_more_requests_than_may_be_asked_for_is_refused():
    for arrivals in ({"name": "constant", "rate_per_s": 1e8}, {"name": "poisson", "rate_per_s": 1e12}):
        with pytest.raises(InputError, match=r"duration_s is 11\.0, expected so short that at most 1,000,000,000 "):
            build(duration_s=11.0, arrivals=arrivals, **LENGTHS)
