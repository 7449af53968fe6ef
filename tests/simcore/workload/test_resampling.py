"""Traces drawn anew: other requests for each seed, of the same distribution."""

import numpy as np
import pytest

from simcore.core.errors import InputError
from simcore.workload import RequestBatch, TraceWorkload, build_workload
from simcore.workload.contents import unlike_any_other
from simcore.workload.recorded import replay
from simcore.workload.resampling import BLOCKS, block_length_ns, resampled

REQUESTS = 400


@pytest.fixture
def recorded():
    random = np.random.default_rng(0)
    arrival_ns = np.sort(random.integers(100 * 10**9, size=REQUESTS))
    prompt_tokens, output_tokens = random.integers(1, 900, size=REQUESTS), random.integers(1, 90, size=REQUESTS)
    contents = unlike_any_other(prompt_tokens, output_tokens, 0)
    return RequestBatch(arrival_ns - arrival_ns[0], prompt_tokens, output_tokens, contents=contents)


@pytest.fixture
def trace(tmp_path, recorded):
    rows = zip(recorded.arrival_ns, recorded.prompt_tokens, recorded.output_tokens, strict=True)
    lines = [f"{arrival / 1e9:.9f},{prompt},{output}" for arrival, prompt, output in rows]
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(["arrival_s,prompt_tokens,output_tokens", *lines]))
    return path


def test_a_seed_gives_its_own_requests_each_time(recorded):
    one, again, other = (resampled(recorded, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.arrival_ns, again.arrival_ns)
    assert one.contents == again.contents
    assert not np.array_equal(one.arrival_ns[:50], other.arrival_ns[:50])
    assert (np.diff(one.arrival_ns) >= 0).all()
    assert one.arrival_ns[0] >= 0
    assert one.arrival_ns[-1] < BLOCKS * block_length_ns(recorded.arrival_ns)


def test_over_many_seeds_every_request_comes_once_on_average(recorded):
    marked = RequestBatch(recorded.arrival_ns, np.arange(1, REQUESTS + 1), recorded.output_tokens)
    draws = 400
    counts = sum(np.bincount(resampled(marked, seed).prompt_tokens, minlength=REQUESTS + 1) for seed in range(draws))
    assert counts[0] == 0
    assert counts[1:].mean() / draws == pytest.approx(1, abs=0.02)
    assert (np.abs(counts[1:] / draws - 1) < 0.3).all()  # six standard errors


def test_within_a_block_lengths_and_gaps_are_as_recorded(recorded):
    marked = RequestBatch(recorded.arrival_ns, np.arange(1, REQUESTS + 1), recorded.output_tokens)
    drawn = resampled(marked, 3)
    block_ns = block_length_ns(recorded.arrival_ns)
    assert np.array_equal(drawn.output_tokens, recorded.output_tokens[drawn.prompt_tokens - 1])
    following = np.diff(drawn.prompt_tokens) == 1
    same_block = np.diff(drawn.arrival_ns // block_ns) == 0
    assert (following | (drawn.prompt_tokens[1:] == 1))[same_block].all()
    gaps = np.diff(recorded.arrival_ns)[drawn.prompt_tokens[:-1][following & same_block] - 1]
    assert np.array_equal(np.diff(drawn.arrival_ns)[following & same_block], gaps)


def test_copies_of_a_request_have_no_token_in_common(recorded):
    drawn = resampled(recorded, 4)
    assert len(np.unique(drawn.prompt_tokens)) < len(drawn)
    assert len(np.unique(drawn.contents.run_first)) == len(drawn)
    order = np.argsort(drawn.contents.run_first)
    ends = drawn.contents.output_first + drawn.output_tokens
    assert (ends[order][:-1] <= drawn.contents.run_first[order][1:]).all()


def test_a_scenario_draws_by_its_seed_before_scaling_and_says_how(trace, tmp_path):
    section = {"trace": "trace.csv", "resample": True}
    plain, fast = (
        build_workload(TraceWorkload(**section, rate_scale=scale), 7, tmp_path).requests for scale in (1.0, 4.0)
    )
    assert np.array_equal(plain.prompt_tokens, fast.prompt_tokens)
    assert np.array_equal(np.rint(plain.arrival_ns / 4), fast.arrival_ns)
    drawn = build_workload(TraceWorkload(**section), 7, tmp_path)
    assert drawn.notices == (
        f"{trace}: requests were drawn anew by the seed, as 20 blocks of 5 s of recorded time, with replacement, from "
        "anywhere in it and around its end.",
    )
    as_recorded = build_workload(TraceWorkload(trace="trace.csv"), 7, tmp_path)
    assert as_recorded.requests.prompt_tokens.tolist() == replay(trace).requests.prompt_tokens.tolist()
    assert as_recorded.notices == ()


@pytest.mark.parametrize("arrival_ns", [np.arange(39) * 10**9, np.zeros(100, dtype=np.int64)])
def test_too_short_a_trace_is_refused(arrival_ns):
    ones = np.ones(len(arrival_ns), dtype=np.int64)
    with pytest.raises(InputError, match=r"workload\.resample is true, expected a trace of at least 40 requests over"):
        resampled(RequestBatch(arrival_ns, ones, ones), 0)
