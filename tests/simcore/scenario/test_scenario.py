"""Scenario documents: presets laid under them, assignments over them, names of policies spelt out."""

import pytest

from simcore.core.errors import InputError
from simcore.scenario import engine_names, override, parse_scenario

FIXED = {"name": "fixed", "tokens": 5}
DOCUMENT = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm"},
    "workload": {
        "requests": 5,
        "arrivals": {"name": "poisson", "rate_per_s": 1},
        "prompt_tokens": FIXED,
        "output_tokens": FIXED,
    },
}


def test_the_preset_fills_in_what_is_not_stated():
    scenario = parse_scenario(DOCUMENT | {"memory": {"block_size_tokens": 32}})
    assert (scenario.engine, scenario.memory.block_size_tokens, scenario.memory.null_blocks) == ("vllm-v1", 32, 1)
    assert scenario.scheduler.batching["max_batched_tokens"] == 8192


@pytest.mark.parametrize("engine", engine_names())
def test_every_preset_is_a_valid_scenario_part(engine):
    assert parse_scenario(DOCUMENT | {"engine": engine}).engine == engine


def test_a_bare_name_is_a_policy_with_its_defaults():
    scheduler = {"ordering": "fcfs", "batching": "chunked-prefill", "preemption": {"victim": "latest"}}
    scenario = parse_scenario(DOCUMENT | {"scheduler": scheduler})
    assert scenario.scheduler == parse_scenario(DOCUMENT).scheduler


def test_the_full_document_means_the_same():
    scenario = parse_scenario(DOCUMENT | {"slo": {"ttft_s": {"p99": 2}}})
    assert parse_scenario(scenario.document()) == scenario


def test_parsing_leaves_the_document_alone():
    before = repr(DOCUMENT)
    override(DOCUMENT, ["workload.arrivals.rate_per_s=9", "scheduler.ordering=fcfs"])
    parse_scenario(DOCUMENT)
    assert repr(DOCUMENT) == before


@pytest.mark.parametrize(
    ("assignments", "place", "value"),
    [
        (["workload.requests=1e3"], ("workload", "requests"), 1000),
        (["seed=1", "seed=2"], ("seed",), 2),
        (["slo.ttft_s.p99=2"], ("slo",), {"ttft_s": {"p99": 2}}),
        (["workload={trace: x.csv}"], ("workload",), {"trace": "x.csv"}),
        (["workload.arrivals.name=constant"], ("workload", "arrivals"), {"name": "constant", "rate_per_s": 1}),
        (["scheduler.ordering=fcfs"], ("scheduler", "ordering"), {"name": "fcfs"}),
        (["model=a=b"], ("model",), "a=b"),
        (["model="], ("model",), None),
        ([" seed =3"], ("seed",), 3),
    ],
)
def test_assignments(assignments, place, value):
    changed = override(DOCUMENT, assignments)
    for part in place:
        changed = changed[part]
    assert changed == value


def test_an_assignment_to_a_parameter_keeps_the_policy_that_a_bare_name_chose():
    document = DOCUMENT | {"scheduler": {"batching": "of-mine"}}
    changed = override(document, ["scheduler.batching.budget=5"])
    assert changed["scheduler"]["batching"] == {"name": "of-mine", "budget": 5}


@pytest.mark.parametrize("assignment", ["seed", "=3", "a..b=1", ".a=1", "a.=1", "", "seed=[1"])
def test_what_is_no_assignment(assignment):
    with pytest.raises(InputError, match=r"^--set"):
        override(DOCUMENT, [assignment])


def test_an_assignment_reaches_into_a_list():
    streams = [{"tenant": "one", "priority": 1}, {"tenant": "other", "priority": 2}]
    document = DOCUMENT | {"workload": {"streams": streams}}
    changed = override(document, ["workload.streams.1.priority=7"])
    assert [stream["priority"] for stream in changed["workload"]["streams"]] == [1, 7]
    assert document["workload"]["streams"][1]["priority"] == 2
