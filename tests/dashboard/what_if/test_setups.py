"""Two setups that share their requests, changed one value at a time."""

import pytest

from dashboard.what_if.fields import SETUP_FIELDS, SHARED_FIELDS, field_of_error, shown_fields
from dashboard.what_if.setups import SIDES, default_pair, value_at, with_value
from simcore.scenario import parse_scenario


@pytest.mark.parametrize("side", SIDES)
def test_the_dashboard_opens_with_scenarios_that_are_right(side):
    assert parse_scenario(default_pair().document(side)).seed == 0


def test_a_scenario_for_one_setup_brings_its_requests_for_both():
    scenario = {"model": "qwen3-8b", "cluster": {"accelerator": "l40s"}, "workload": {"trace": "a.csv"}, "seed": 7}
    changed = default_pair().with_scenario("B", scenario)
    assert changed.document("B") == scenario | {"slo": default_pair().shared["slo"]}
    assert changed.document("A")["workload"] == {"trace": "a.csv"}
    assert changed.document("A")["model"] == default_pair().document("A")["model"]


def test_a_value_is_replaced_and_all_else_stays():
    document = {"cluster": {"accelerator": "l40s", "replicas": 1}, "seed": 3}
    assert with_value(document, "cluster.replicas", 4) == {"cluster": {"accelerator": "l40s", "replicas": 4}, "seed": 3}
    assert with_value(document, "slo.ttft_s.p99", 0.5)["slo"] == {"ttft_s": {"p99": 0.5}}
    assert with_value(document, "cluster.replicas", None) == {"cluster": {"accelerator": "l40s"}, "seed": 3}
    assert with_value(document, "nothing.here", None) == document


def test_another_policy_leaves_no_parameter_of_the_one_before():
    document = {"scheduler": {"ordering": {"name": "vtc", "input_weight": 2.0}}}
    assert with_value(document, "scheduler.ordering.name", "fcfs") == {"scheduler": {"ordering": {"name": "fcfs"}}}


def test_fields_are_those_that_a_scenario_has():
    complete = parse_scenario(default_pair().document("A")).document()
    shown = [field.path for field in shown_fields(SHARED_FIELDS, complete)]
    assert "workload.arrivals.rate_per_s" in shown
    assert "workload.arrivals.concurrency" not in shown
    assert "slo.tpot_s.p99" in shown
    assert all(value_at(complete, field.path) is not None for field in shown_fields(SETUP_FIELDS, complete))


@pytest.mark.parametrize("field", [field for field in (*SETUP_FIELDS, *SHARED_FIELDS) if field.kind == "choice"])
def test_a_choice_offers_what_there_is(field):
    assert len(field.choices()) > 1
    assert len(set(field.choices())) == len(field.choices())


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ("cluster.tensor_parallel", "cluster.tensor_parallel"),
        ("scheduler.ordering", "scheduler.ordering.name"),
        ("scheduler.ordering.predictor", "scheduler.ordering.name"),
        ("workload.prompt_tokens", "workload.prompt_tokens.tokens"),
        ("no.field.of.it", None),
        ("", None),
    ],
)
def test_an_error_finds_its_field(named, path):
    field = field_of_error(named, (*SETUP_FIELDS, *SHARED_FIELDS))
    assert (None if field is None else field.path) == path
