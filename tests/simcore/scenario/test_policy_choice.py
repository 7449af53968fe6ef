"""Policies from their sections, as YAML has them."""

import json

import pytest
import yaml

from policies.registry import KINDS, policy_names
from simcore.core.errors import InputError
from simcore.scenario.policy_choice import build_policy, complete_policy
from simcore.scenario.reading import parse_scenario

EVERY = [(kind, name) for kind in KINDS for name in policy_names(kind)]


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_a_complete_section_means_the_same_when_it_comes_back_from_a_file(kind, name):
    section = complete_policy(kind, {"name": name}, kind)
    from_json = json.loads(json.dumps(section))
    for read in (yaml.safe_load(yaml.safe_dump(from_json)), from_json):
        assert complete_policy(kind, read, kind) == section


def test_a_list_is_what_a_policy_calls_a_tuple():
    policy = build_policy("batching", {"name": "bucketed", "edges_tokens": [10, 30]}, "scheduler.batching")
    assert policy.edges_tokens == (10, 30)
    with pytest.raises(InputError, match=r"scheduler\.batching\.edges_tokens\.1 is 'x', expected a whole number"):
        build_policy("batching", {"name": "bucketed", "edges_tokens": [10, "x"]}, "scheduler.batching")
    with pytest.raises(InputError, match=r"scheduler\.batching\.edges_tokens is 10, expected a list"):
        build_policy("batching", {"name": "bucketed", "edges_tokens": 10}, "scheduler.batching")


def test_a_key_of_another_type_is_told_as_a_key():
    with pytest.raises(InputError, match=r"scheduler\.ordering\.weights\.1 is the key 1, expected text\."):
        build_policy("ordering", {"name": "vtc", "weights": {1: 2.0}}, "scheduler.ordering")


def test_admission_takes_a_list_even_of_a_single_policy():
    document = {"model": "smollm2-135m", "cluster": {"accelerator": "h100-sxm"}, "workload": {"trace": "x.csv"}}
    with pytest.raises(InputError, match=r"scheduler\.admission is 'token-bucket', expected a list"):
        parse_scenario({**document, "scheduler": {"admission": "token-bucket"}})
