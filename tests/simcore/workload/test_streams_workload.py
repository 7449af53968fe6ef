"""Several streams at once: merged by arrival, each drawing for itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.errors import InputError
from simcore.core.validation import explain
from simcore.workload import NO_OUTPUT_LIMIT, RequestBatch, WorkloadConfig, build_workload
from simcore.workload.in_memory import InMemoryOpenLoop, merge
from simcore.workload.streams import seed_of_part

POISSON = {"name": "poisson", "rate_per_s": 10.0}
UNIFORM = {"name": "uniform", "low": 1, "high": 1000}
STREAM = {"requests": 50, "arrivals": POISSON, "prompt_tokens": UNIFORM, "output_tokens": UNIFORM}


class Scenario(pydantic.BaseModel):
    workload: WorkloadConfig


def build(*streams: Any, seed: int = 0, base_dir: Path = Path()) -> InMemoryOpenLoop:
    workload = build_workload(Scenario(workload={"streams": list(streams)}).workload, seed, base_dir)
    assert isinstance(workload, InMemoryOpenLoop)
    return workload


def of_tenant(requests: RequestBatch, name: str) -> np.ndarray:
    own = requests.tenant == requests.tenants.index(name)
    return np.array([requests.arrival_ns[own], requests.prompt_tokens[own], requests.output_tokens[own]])


def rows(requests: RequestBatch) -> list[tuple]:
    """Each request by what it means, whichever columns say so."""
    return [
        (
            int(requests.arrival_ns[i]),
            int(requests.prompt_tokens[i]),
            "" if requests.tenant is None else requests.tenants[requests.tenant[i]],
            0 if requests.priority is None else int(requests.priority[i]),
            NO_OUTPUT_LIMIT if requests.max_output_tokens is None else int(requests.max_output_tokens[i]),
        )
        for i in range(len(requests))
    ]


@st.composite
def parts(draw):
    size = draw(st.integers(1, 12))
    ints = lambda low, high: np.array(draw(st.lists(st.integers(low, high), min_size=size, max_size=size)))  # noqa: E731
    names = tuple(draw(st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=1, max_size=4, unique=True)))
    tenant = ints(0, len(names) - 1) if draw(st.booleans()) else None
    return RequestBatch(
        np.sort(ints(0, 20)),
        ints(1, 9),
        ints(1, 9),
        tenant,
        names if tenant is not None else (),
        ints(0, 3) if draw(st.booleans()) else None,
        ints(9, 12) if draw(st.booleans()) else None,
    )


@settings(max_examples=200)
@given(st.lists(parts(), min_size=1, max_size=4))
def test_merging_is_a_stable_sort_of_all_requests(given_parts):
    merged = merge(given_parts)
    everything = [row for part in given_parts for row in rows(part)]
    assert rows(merged) == sorted(everything, key=lambda row: row[0])
    assert len(set(merged.tenants)) == len(merged.tenants)


def test_each_stream_keeps_its_requests():
    chat = {**STREAM, "tenant": "chat", "priority": 0}
    batch = {**STREAM, "tenant": "batch", "priority": 2, "max_output_tokens": 300, "requests": 20}
    requests = build(chat, batch).requests
    assert (requests.tenants, np.bincount(requests.tenant).tolist()) == (("chat", "batch"), [50, 20])
    assert np.array_equal(requests.priority, 2 * requests.tenant)
    assert np.array_equal(requests.max_output_tokens, np.where(requests.tenant == 1, 300, NO_OUTPUT_LIMIT))
    assert (np.diff(requests.arrival_ns) >= 0).all()
    assert of_tenant(requests, "batch")[2].max() == 300


def test_equal_arrivals_stand_in_the_order_of_the_streams():
    every_second = {**STREAM, "arrivals": {"name": "constant", "rate_per_s": 1.0}, "requests": 3}
    requests = build({**every_second, "tenant": "b"}, {**every_second, "tenant": "a"}).requests
    assert [requests.tenants[i] for i in requests.tenant] == ["b", "a"] * 3


def test_other_streams_change_no_draw():
    a, b = {**STREAM, "tenant": "a"}, {**STREAM, "tenant": "b", "requests": 80}
    alone, first, last = build(a).requests, build(a, b).requests, build(b, {**STREAM, "tenant": "c"}, a).requests
    expected = np.array([alone.arrival_ns, alone.prompt_tokens, alone.output_tokens])
    assert np.array_equal(of_tenant(first, "a"), expected)
    assert np.array_equal(of_tenant(last, "a"), expected)


def test_streams_draw_apart():
    unlike = build({**STREAM, "tenant": "a"}, {**STREAM, "tenant": "b"}).requests
    assert not np.array_equal(of_tenant(unlike, "a"), of_tenant(unlike, "b"))
    twice = build({**STREAM, "tenant": "a"}, {**STREAM, "tenant": "a", "priority": 1}).requests
    assert twice.tenants == ("a",)
    assert not np.array_equal(twice.arrival_ns[twice.priority == 0], twice.arrival_ns[twice.priority == 1])


def test_same_seed_same_requests():
    streams = ({**STREAM, "tenant": "a"}, STREAM)
    one, again, other = (build(*streams, seed=seed).requests for seed in (3, 3, 4))
    assert rows(one) == rows(again) != rows(other)


def test_seeds_of_parts_are_many():
    seeds = {seed_of_part(seed, part) for seed in range(50) for part in ("a", "b", "stream 0 of a", "stream 1 of a")}
    assert len(seeds) == 200
    assert max(seeds) < 2**128


def test_a_trace_among_streams_brings_its_notices(tmp_path):
    (tmp_path / "t.csv").write_text("arrival_s,prompt_tokens,output_tokens,who\n1,1,1,x\n0,2,2,y\n3,3,0,x\n")
    trace = {"trace": "t.csv", "sort": True, "skip_failed": True, "columns": {"tenant": "who"}}
    workload = build(STREAM, trace, base_dir=tmp_path)
    assert len(workload.notices) == 2
    assert of_tenant(workload.requests, "y").tolist() == [[0], [2], [2]]
    assert np.count_nonzero(workload.requests.tenant == workload.requests.tenants.index("")) == 50


def test_a_broken_stream_is_named(tmp_path):
    late = {**STREAM, "duration_s": 0.001, "arrivals": {"name": "constant", "rate_per_s": 1.0}, "tenant": "a"}
    del late["requests"]
    with pytest.raises(InputError, match=r"^workload\.streams\.1\.duration_s is 0\.001, expected long enough"):
        build(STREAM, late)
    rare = {**STREAM, "arrivals": {"name": "constant", "rate_per_s": 1e-12}}
    with pytest.raises(InputError, match=r"^workload\.streams\.0\.requests is 50, expected so few"):
        build(rare)


def test_a_closed_loop_is_no_stream():
    closed = {**STREAM, "arrivals": {"name": "closed-loop", "concurrency": 3}}
    with pytest.raises(
        InputError, match=r"^workload\.streams\.1\.arrivals\.name is 'closed-loop', expected arrivals that do not wait"
    ):
        build(STREAM, closed)


def test_a_negative_seed():
    with pytest.raises(InputError, match=r"^seed is -1"):
        build(STREAM, seed=-1)


REJECTED = [
    ({"streams": []}, "workload.streams is [], expected at least one stream."),
    ({"streams": STREAM}, "workload.streams is a mapping, expected a list"),
    ({"streams": [5]}, "workload.streams.0 is 5, expected a mapping with trace, or with arrivals, lengths and"),
    ({"streams": [STREAM, {**STREAM, "priority": -1}]}, "workload.streams.1.priority is -1, expected a whole number"),
    ({"streams": [{**STREAM, "requests": 0}]}, "workload.streams.0.requests is 0"),
    ({"streams": [{"streams": [STREAM]}]}, "workload.streams.0.streams is an unknown field"),
    ({"streams": [{"trce": "a.csv", "rate_scale": 2.0}]}, "workload.streams.0.trce is an unknown field"),
    ({"streams": [STREAM], "tenant": "a"}, "workload.tenant is an unknown field, expected one of streams."),
    ({"strems": [STREAM]}, "Did you mean 'streams'?"),
]


@pytest.mark.parametrize(("workload", "expected"), REJECTED)
def test_bad_input_is_one_sentence(workload, expected):
    with pytest.raises(pydantic.ValidationError) as caught:
        Scenario(workload=workload)
    assert expected in str(explain(caught.value, Scenario))


def test_a_written_scenario_reads_back():
    scenario = Scenario(workload={"streams": [STREAM, {"trace": "a.csv", "columns": {"tenant": "who"}}]})
    assert Scenario.model_validate(scenario.model_dump(mode="json", exclude_none=True)) == scenario
