from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.errors import FileError, InputError
from simcore.workload import RequestBatch, TraceWorkload, build_workload
from simcore.workload.in_memory import InMemoryOpenLoop
from simcore.workload.recorded import replay

ROWS = [(10, 1, 9), (12, 2, 8), (12, 3, 7), (15, 4, 6), (20, 5, 5)]


@pytest.fixture
def trace(tmp_path) -> Path:
    lines = [",".join(map(str, row)) for row in ROWS]
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(["arrival_s,prompt_tokens,output_tokens", *lines]))
    return path


def seconds(workload: InMemoryOpenLoop) -> list[float]:
    return (workload.requests.arrival_ns / 1e9).tolist()


def test_the_first_request_arrives_at_zero(trace):
    workload = replay(trace)
    assert seconds(workload) == [0, 2, 2, 5, 10]
    assert workload.requests.output_tokens.tolist() == [9, 8, 7, 6, 5]
    assert workload.notices == ()


def test_rate_scale_squeezes_arrivals_and_keeps_lengths(trace):
    workload = replay(trace, rate_scale=2.5)
    assert seconds(workload) == [0, 0.8, 0.8, 2, 4]
    assert workload.requests.prompt_tokens.tolist() == [1, 2, 3, 4, 5]


def test_window_counts_from_its_start_before_scaling(trace):
    workload = replay(trace, window_s=(1, 10), rate_scale=2.0)
    assert seconds(workload) == [0.5, 0.5, 2]
    assert workload.requests.prompt_tokens.tolist() == [2, 3, 4]


@pytest.mark.parametrize("sort", [False, True])
def test_at_most_so_many_requests(trace, sort):
    assert replay(trace, requests=2, sort=sort).requests.prompt_tokens.tolist() == [1, 2]
    assert replay(trace, requests=2, window_s=(2, 100), sort=sort).requests.prompt_tokens.tolist() == [2, 3]
    assert len(replay(trace, requests=99, sort=sort).requests) == 5


def test_a_window_without_requests_is_an_error(trace):
    with pytest.raises(InputError, match=r"workload.window_s is \(6, 9\), expected .* before its end arrives at 5 s"):
        replay(trace, window_s=(6, 9))


def test_lengths_alone_cannot_be_replayed(tmp_path):
    (tmp_path / "lengths.csv").write_text("num_prefill_tokens,num_decode_tokens\n10,1\n")
    with pytest.raises(FileError, match="has no arrival times"):
        replay(tmp_path / "lengths.csv")


def test_notices_say_what_was_changed(tmp_path):
    (tmp_path / "t.csv").write_text("arrival_s,prompt_tokens,output_tokens\n1,1,1\n0,2,2\n2,3,0\n")
    config = TraceWorkload(trace="t.csv", sort=True, skip_failed=True)
    workload = build_workload(config, 0, tmp_path)
    assert isinstance(workload, InMemoryOpenLoop)
    failed, unordered = workload.notices
    assert "1 failed" in failed
    assert "1 requests were out of order" in unordered
    assert workload.requests.prompt_tokens.tolist() == [2, 1]


def test_a_scenario_names_its_own_columns(tmp_path):
    (tmp_path / "t.csv").write_text("when,p,o\n2500,1,2\n3000,3,4\n")
    columns = {"arrival": "when", "arrival_unit": "ms", "prompt_tokens": "p", "output_tokens": "o"}
    config = TraceWorkload.model_validate({"trace": "t.csv", "columns": columns})
    (batch,) = build_workload(config, 0, tmp_path).batches()
    assert batch.arrival_ns.tolist() == [0, 500_000_000]
    assert (batch.prompt_tokens + batch.output_tokens).tolist() == [3, 7]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(1, 99)), min_size=1), st.integers(1, 20))
def test_batches_hold_everything_once(rows, batch_requests):
    arrival_ns, tokens = (np.array(column, dtype=np.int64) for column in zip(*sorted(rows), strict=True))
    workload = InMemoryOpenLoop(RequestBatch(arrival_ns, tokens, tokens + 1), batch_requests=batch_requests)
    batches = list(workload.batches())
    assert np.array_equal(np.concatenate([batch.arrival_ns for batch in batches]), arrival_ns)
    assert np.array_equal(np.concatenate([batch.output_tokens for batch in batches]), tokens + 1)
    assert max(map(len, batches)) <= batch_requests
