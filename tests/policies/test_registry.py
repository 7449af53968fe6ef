import inspect
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from policies import ordering, registry
from policies.batching.chunked_prefill import ChunkedPrefill
from policies.ordering import Ordering
from policies.ordering.fcfs import FirstComeFirstServed
from policies.registry import KINDS, UnknownPolicyError, built_in_names, policy_class, policy_names
from simcore.build.simulation import Simulation

REPOSITORY = Path(__file__).resolve().parents[2]
EVERY = [(kind, name) for kind in KINDS for name in built_in_names(kind)]


@dataclass(frozen=True)
class LastComeFirstServed(Ordering):
    def key(self, request, now_s):
        return (-request.arrival_s,)


class FakeEntryPoint:
    def __init__(self, name, value):
        self.name, self.value = name, value


@pytest.fixture
def third_party(monkeypatch):
    """What an installed package with entry points would add."""
    points = [
        FakeEntryPoint("ordering.lcfs", f"{__name__}:LastComeFirstServed"),
        FakeEntryPoint("ordering.fcfs", f"{__name__}:LastComeFirstServed"),
        FakeEntryPoint("batching.lcfs-batching", "nowhere:Nothing"),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == "servetwin.policies" else [])
    registry._third_party.cache_clear()
    yield
    registry._third_party.cache_clear()


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_every_built_in_can_be_made_from_its_name(kind, name):
    assert type(policy_class(kind, name)()) is policy_class(kind, name)


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_every_built_in_says_where_it_comes_from(kind, name):
    paragraphs = inspect.getdoc(policy_class(kind, name)).split("\n\n")
    assert re.fullmatch(r"Source: \S.*\.", paragraphs[-1])
    assert not paragraphs[0].startswith("Source:")


def test_names_are_those_of_the_kind():
    assert policy_names("preemption") == (
        "fewest-generated",
        "fewest-tokens-lost",
        "latest",
        "longest-remaining",
        "lowest-priority",
    )
    assert policy_class("ordering", "fcfs") is FirstComeFirstServed
    assert policy_class("batching", "chunked-prefill") is ChunkedPrefill


@pytest.mark.usefixtures("third_party")
def test_a_third_party_adds_a_policy_and_replaces_none():
    assert policy_names("ordering") == tuple(sorted([*built_in_names("ordering"), "lcfs"]))
    assert policy_class("ordering", "lcfs") is LastComeFirstServed
    assert policy_class("ordering", "fcfs") is FirstComeFirstServed
    assert policy_names("batching") == tuple(sorted([*built_in_names("batching"), "lcfs-batching"]))
    assert policy_names("routing") == built_in_names("routing")


@pytest.mark.usefixtures("third_party")
def test_a_third_partys_policy_decides(tmp_path):
    """One slot, three requests that arrive together behind a first: the last of them is served next."""
    (tmp_path / "trace.csv").write_text(
        "arrival_s,prompt_tokens,output_tokens\n0,10,50\n0.001,10,2\n0.002,10,2\n0.003,10,2\n"
    )
    scenario = {
        "model": "smollm2-135m",
        "cluster": {"accelerator": "h100-sxm"},
        "scheduler": {"ordering": "lcfs", "batching": {"max_running_requests": 1}},
        "workload": {"trace": "trace.csv", "format": "csv"},
    }
    requests = Simulation.prepare(scenario, tmp_path).run().requests
    assert requests["first_scheduled_s"].argsort().tolist() == [0, 3, 2, 1]


def test_an_unknown_name_tells_the_known_ones():
    known = built_in_names("routing")
    with pytest.raises(UnknownPolicyError, match=r"no routing policy is called 'robin'; known: .*robin") as caught:
        policy_class("routing", "robin")
    assert (caught.value.kind, caught.value.name, caught.value.known) == ("routing", "robin", known)


def test_a_name_imports_its_own_module_alone():
    script = (
        "import sys; from policies.registry import is_policy; "
        "assert is_policy('ordering', 'sjf') and not is_policy('ordering', 'weights'); "
        "print(sorted(name for name in sys.modules if name.startswith('policies.ordering.')))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert "policies.ordering.sjf" in found.stdout
    assert "policies.ordering.vtc" not in found.stdout


def test_a_file_holds_one_policy(tmp_path, monkeypatch):
    (tmp_path / "twins.py").write_text(
        "from policies.ordering import Ordering\nclass One(Ordering): ...\nclass Other(Ordering): ...\n"
    )
    monkeypatch.setattr(ordering, "__path__", [*ordering.__path__, str(tmp_path)])
    registry._modules.cache_clear()
    try:
        with pytest.raises(TypeError, match=r"policies\.ordering\.twins holds 2 policies"):
            policy_class("ordering", "twins")
    finally:
        registry._modules.cache_clear()
