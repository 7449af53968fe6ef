"""Who sends the requests of one stream: tenants, priorities and limits, stated or drawn."""

from typing import Any

import numpy as np
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.errors import InputError
from simcore.core.validation import explain
from simcore.workload import NO_OUTPUT_LIMIT, ClosedLoop, RequestBatch, WorkloadConfig, build_workload
from simcore.workload.arrivals import Poisson
from simcore.workload.in_memory import merge
from simcore.workload.lengths import MAX_TOKENS, Uniform
from simcore.workload.pairs import IndependentPairs
from simcore.workload.senders import Sender, Senders
from simcore.workload.synthetic import SyntheticOpenLoop
from simcore.workload.transformed import TransformedOpenLoop

SYNTHETIC = {
    "requests": 4000,
    "arrivals": {"name": "poisson", "rate_per_s": 10.0},
    "prompt_tokens": {"name": "uniform", "low": 1, "high": 100},
    "output_tokens": {"name": "uniform", "low": 1, "high": 400},
}
TRACE = "arrival_s,prompt_tokens,output_tokens\n0,1,10\n1,2,20\n2,3,30\n"


class Scenario(pydantic.BaseModel):
    workload: WorkloadConfig


def build(tmp_path, **workload: Any):
    return build_workload(Scenario(workload=workload).workload, 0, tmp_path)


def requests(workload) -> RequestBatch:
    """All of them; merging requests that are in order changes nothing."""
    return merge(list(workload.batches()))


def test_no_limit_is_the_longest_output():
    assert NO_OUTPUT_LIMIT == MAX_TOKENS


def test_nothing_said_means_no_columns(tmp_path):
    workload = build(tmp_path, **SYNTHETIC, tenant="", priority=0)
    assert isinstance(workload, SyntheticOpenLoop)
    sent = requests(workload)
    assert (sent.tenant, sent.tenants, sent.priority, sent.max_output_tokens) == (None, (), None, None)


def test_one_tenant_changes_no_draw(tmp_path):
    sent = requests(build(tmp_path, **SYNTHETIC, tenant="chat", priority=3))
    plain = requests(build(tmp_path, **SYNTHETIC))
    assert np.array_equal(sent.arrival_ns, plain.arrival_ns)
    assert np.array_equal(sent.output_tokens, plain.output_tokens)
    assert sent.tenants == ("chat",)
    assert not sent.tenant.any()
    assert set(sent.priority) == {3}
    assert sent.max_output_tokens is None


def test_outputs_end_at_the_limit(tmp_path):
    sent = requests(build(tmp_path, **SYNTHETIC, max_output_tokens=150))
    plain = requests(build(tmp_path, **SYNTHETIC))
    assert sent.output_tokens.tolist() == [min(tokens, 150) for tokens in plain.output_tokens.tolist()]
    assert set(sent.max_output_tokens) == {150}


def test_a_closed_loop_has_senders_too(tmp_path):
    arrivals = {"name": "closed-loop", "concurrency": 4}
    workload = build(tmp_path, **SYNTHETIC | {"arrivals": arrivals}, tenant="chat", max_output_tokens=7)
    assert isinstance(workload, ClosedLoop)
    assert workload.requests.tenants == ("chat",)
    assert workload.requests.output_tokens.max() == 7


def test_tenants_by_share(tmp_path):
    tenants = [{"name": "a", "share": 0.7, "priority": 1}, {"name": "b", "share": 0.3, "max_output_tokens": 9}]
    sent = requests(build(tmp_path, **SYNTHETIC, tenants=tenants))
    assert sent.tenants == ("a", "b")
    assert np.mean(sent.tenant == 0) == pytest.approx(0.7, abs=5 * np.sqrt(0.21 / 4000))
    assert np.array_equal(sent.priority, 1 - sent.tenant)
    assert np.array_equal(sent.max_output_tokens, np.where(sent.tenant == 0, NO_OUTPUT_LIMIT, 9))
    assert sent.output_tokens[sent.tenant == 1].max() == 9
    assert sent.output_tokens[sent.tenant == 0].max() > 300


def test_shares_of_a_trace(tmp_path):
    (tmp_path / "t.csv").write_text(TRACE)
    tenants = [{"name": "a", "share": 1 / 3}, {"name": "b", "share": 1 / 3}, {"name": "c", "share": 1 / 3}]
    sent = requests(build(tmp_path, trace="t.csv", tenants=tenants))
    assert sent.tenants == ("a", "b", "c")
    assert sent.output_tokens.tolist() == [10, 20, 30]


def test_a_limit_stated_for_a_trace(tmp_path):
    (tmp_path / "t.csv").write_text(TRACE)
    workload = build(tmp_path, trace="t.csv", tenant="x", max_output_tokens=20)
    assert workload.requests.output_tokens.tolist() == [10, 20, 20]
    assert workload.notices == ()


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(st.integers(1, 99), st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=5),
    st.integers(0, 2**63),
    st.integers(1, 200),
    st.integers(1, 300),
)
def test_senders_do_not_depend_on_batches(drawn, seed, count, batch_requests):
    whole = sum(weight for weight, _, _ in drawn)
    senders = Senders(
        tuple(Sender(f"t{place}", priority, limit) for place, (_, priority, limit) in enumerate(drawn)),
        tuple(weight / whole for weight, _, _ in drawn),
    )
    pairs = IndependentPairs(Uniform(1, 9), Uniform(1, 9))

    def made(size):
        workload = SyntheticOpenLoop(Poisson(9.0), pairs, seed, count, batch_requests=size)
        return requests(TransformedOpenLoop(workload, (senders,), seed))

    at_once, in_parts = made(count), made(batch_requests)
    assert np.array_equal(at_once.tenant, in_parts.tenant)
    assert np.array_equal(at_once.output_tokens, in_parts.output_tokens)
    assert (at_once.tenant < len(drawn)).all()
    assert (at_once.output_tokens <= at_once.max_output_tokens).all()


SHARES = [{"name": "a", "share": 0.5}, {"name": "b", "share": 0.5}]
REJECTED = [
    ({"priority": -1}, "workload.priority is -1, expected a whole number of at least 0"),
    ({"priority": 1.5}, "workload.priority is 1.5, expected a whole number"),
    ({"max_output_tokens": 0}, "workload.max_output_tokens is 0, expected a whole number of at least 1"),
    ({"tenant": 3}, "workload.tenant is 3, expected text"),
    ({"tennant": "a"}, "Did you mean 'tenant'?"),
    ({"tenants": []}, "workload.tenants is [], expected shares that add up to 1, not 0."),
    ({"tenants": SHARES[:1]}, "expected shares that add up to 1, not 0.5."),
    ({"tenants": SHARES[:1] * 2}, "expected each tenant once, not 2 times 'a'."),
    ({"tenants": [{"name": "a", "share": 0}]}, "workload.tenants.0.share is 0, expected a number greater than 0"),
    ({"tenants": [{"name": "", "share": 1}]}, "workload.tenants.0.name is '', expected text that is not empty"),
    ({"tenants": [{"name": "a", "shar": 1}]}, "Did you mean 'share'?"),
    ({"tenants": SHARES, "tenant": "c"}, "expected either tenants, each with what it sends, or tenant,"),
    ({"tenants": SHARES, "max_output_tokens": 5}, "expected either tenants, each with what it sends, or tenant,"),
]


def sentence(workload) -> str:
    with pytest.raises(pydantic.ValidationError) as caught:
        Scenario(workload=workload)
    return str(explain(caught.value, Scenario))


@pytest.mark.parametrize(("said", "expected"), REJECTED)
@pytest.mark.parametrize("workload", [SYNTHETIC, {"trace": "a.csv"}])
def test_bad_input_is_one_sentence(workload, said, expected):
    assert expected in sentence({**workload, **said})


@pytest.mark.parametrize(
    ("column", "said"),
    [("tenant", {"tenant": "a"}), ("priority", {"priority": 1}), ("max_output_tokens", {"tenants": SHARES})],
)
def test_a_column_and_a_statement_contradict(column, said):
    assert f"expected {column} either from a column or stated here, not both." in sentence(
        {"trace": "a.csv", "columns": {column: "x"}, **said}
    )


def test_measured_lengths_have_no_senders():
    lengths = {"name": "empirical", "file": "a.csv", "columns": {"tenant": "who"}}
    workload = {"requests": 5, "arrivals": SYNTHETIC["arrivals"], "lengths": lengths}
    assert "workload.lengths.columns.tenant is an unknown field" in sentence(workload)


@pytest.mark.parametrize("said", [{"tenants": SHARES}, {"tenant": "a", "priority": 2, "max_output_tokens": 5}])
def test_a_written_scenario_reads_back(said):
    scenario = Scenario(workload={**SYNTHETIC, **said})
    assert Scenario.model_validate(scenario.model_dump(mode="json", exclude_none=True)) == scenario


def test_negative_seed(tmp_path):
    with pytest.raises(InputError, match="seed is -1"):
        build_workload(Scenario(workload={**SYNTHETIC, "tenant": "a"}).workload, -1, tmp_path)
