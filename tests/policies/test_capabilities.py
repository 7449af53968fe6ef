"""Policies announce the hooks that they have, and orderings that their keys change with time."""

from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from policies import registry
from policies.batching import Batching
from policies.batching.chunked_prefill import ChunkedPrefill
from policies.capabilities import CapabilityError, check_capabilities, check_time_dependence
from policies.ordering import CacheAwareOrdering, Ordering
from policies.ordering.two_level import TwoLevel
from policies.prediction import LengthPredictor
from policies.prediction.oracle import Oracle
from policies.registry import policy_class, policy_names
from simcore.build.simulation import Simulation
from simcore.core.errors import ServetwinError
from tests.e2e.scenarios import differences


@dataclass(frozen=True, slots=True)
class HighestResponseRatio(Ordering):
    """Serve the request whose wait is longest relative to its predicted service (Brinch Hansen 1971)."""

    predictor: LengthPredictor = field(default_factory=Oracle)

    def key(self, request, now_s):
        service_s = 0.03 * self.predictor.output_tokens(request)
        return (-(now_s - request.arrival_s + service_s) / service_s,)

    @property
    def predictors(self):
        return (self.predictor,)


@dataclass(frozen=True, slots=True)
class Announced(HighestResponseRatio):
    """The same, and says so."""

    changes_with_time = True


@dataclass(frozen=True, slots=True)
class Ranked(CacheAwareOrdering):
    """The same, ranked by a queue that looks up the prefix cache in every step."""

    look_ahead: int = 100_000
    predictor: LengthPredictor = field(default_factory=Oracle)

    def rank(self, request, cached_tokens, now_s):
        return HighestResponseRatio.key(self, request, now_s)

    @property
    def predictors(self):
        return (self.predictor,)


@pytest.mark.parametrize("kind", ["batching", "ordering", "prediction"])
def test_all_built_in_policies_announce_what_they_have(kind):
    for name in policy_names(kind):
        check_capabilities(policy_class(kind, name))


def test_a_hook_that_is_not_announced_is_told_and_so_is_the_reverse():
    class Silent(ChunkedPrefill):
        def accepts(self, request, running):
            return True

    class Boasting(ChunkedPrefill):
        hears_ended = True

    with pytest.raises(CapabilityError, match="Silent defines accepts, and so must state filters_admission = True"):
        check_capabilities(Silent)
    with pytest.raises(CapabilityError, match="Boasting states hears_ended, and so must define ended"):
        check_capabilities(Boasting)
    check_capabilities(Batching)


def test_a_key_that_changes_with_time_must_be_announced():
    with pytest.raises(CapabilityError, match="HighestResponseRatio has a key that changes with time"):
        check_time_dependence(HighestResponseRatio())
    with pytest.raises(CapabilityError, match="TwoLevel has a key"):
        check_time_dependence(TwoLevel(HighestResponseRatio()))
    check_time_dependence(Announced())
    check_time_dependence(TwoLevel(Announced()))
    for name in policy_names("ordering"):
        check_time_dependence(policy_class("ordering", name)())


def scenario(ordering):
    return {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "h100-sxm"},
        "scheduler": {"ordering": ordering, "batching": {"name": "chunked-prefill", "max_running_requests": 16}},
        "workload": {
            "requests": 1000,
            "arrivals": {"name": "poisson", "rate_per_s": 9},
            "prompt_tokens": {"name": "lognormal", "median": 500, "sigma": 0.8, "max": 4000},
            "output_tokens": {"name": "lognormal", "median": 200, "sigma": 0.9, "max": 2000},
        },
    }


@pytest.fixture
def third_party(monkeypatch):
    names = {"hrrn": "Announced", "silent-hrrn": "HighestResponseRatio", "ranked": "Ranked"}
    group = registry.ENTRY_POINT_GROUP
    points = [EntryPoint(f"ordering.{name}", f"{__name__}:{target}", group) for name, target in names.items()]
    monkeypatch.setattr(registry, "entry_points", lambda **_: points)
    registry._third_party.cache_clear()
    yield
    registry._third_party.cache_clear()


def test_waiting_requests_are_ranked_anew_in_every_step(third_party, tmp_path):
    """Response ratios grow while requests wait, so long ones are not put off for ever as shortest job first does.

    A queue that looks up the cache for each request ranks them anew too, so the same key there gives the same run.
    """
    folder = Path(tmp_path)
    anew, looked_up, once = (Simulation.prepare(scenario(name), folder).run() for name in ("hrrn", "ranked", "sjf"))
    told_apart = [text for text in differences(anew, looked_up) if not text.startswith("summary.notices")]
    assert told_apart == []
    assert np.percentile(anew.requests["ttft_s"], 99) < 0.7 * np.percentile(once.requests["ttft_s"], 99)


@pytest.mark.parametrize("replicas", [1, 2])
def test_ranking_anew_jumps_to_the_same_bits(third_party, tmp_path, replicas):
    document = scenario("hrrn") | {"memory": {"num_gpu_blocks": 600}}
    document["cluster"]["replicas"] = replicas
    document["workload"] |= {"requests": 60, "arrivals": {"name": "poisson", "rate_per_s": 30}}
    simulation = Simulation.prepare(document, Path(tmp_path))
    assert differences(simulation.run(check=True), simulation.run(fast_forward=False, check=True)) == []


def test_an_ordering_that_hides_its_dependence_on_time_is_refused(third_party, tmp_path):
    with pytest.raises(ServetwinError, match=r"ordering\.name is 'silent-hrrn', which cannot be used: .*time"):
        Simulation.prepare(scenario("silent-hrrn"), Path(tmp_path))
