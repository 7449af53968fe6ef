from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.bands.bands import (
    FEWEST_REPLAYS,
    STATISTICS,
    banded_latencies,
    banded_rates,
    figures_of,
    with_bands,
)
from experiments.bands.run import run_with_bands
from simcore.build.simulation import Simulation
from simcore.core.errors import InputError
from simcore.scenario import override, read_scenario

REPOSITORY = Path(__file__).resolve().parents[3]
DOCUMENT = {
    "model": "llama-3.1-8b",
    "engine": "vllm-v1",
    "cluster": {"accelerator": "h100-sxm"},
    "pricing": {"profile": "auto"},
    "workload": {
        "requests": 60,
        "arrivals": {"name": "poisson", "rate_per_s": 20},
        "prompt_tokens": {"name": "uniform", "low": 50, "high": 900},
        "output_tokens": {"name": "uniform", "low": 5, "high": 60},
    },
}


def prepared(*overrides):
    return Simulation.prepare(override(DOCUMENT, overrides), Path())


def without_run(summary):
    return {name: value for name, value in summary.items() if name != "run"}


def bands_of(summary):
    named = {metric: (summary["metrics"][metric], STATISTICS) for metric in banded_latencies()}
    named["throughput"] = (summary["throughput"], banded_rates())
    return {
        (metric, name): (figures[name], figures["band"][name])
        for metric, (figures, names) in named.items()
        for name in names
    }


@pytest.fixture(scope="module")
def banded():
    return run_with_bands(prepared(), 12, jobs=1)


def test_none_are_asked_for_by_default():
    result = run_with_bands(prepared(), 0)
    assert without_run(result.summary) == without_run(prepared().run().summary)


def test_bands_stand_beside_figures_that_stay_as_they_were(banded):
    plain = prepared().run()
    summary = deepcopy(without_run(banded.summary))
    assert summary["pricing"].pop("band")["replays"] == 12
    for metric in banded_latencies():
        assert set(summary["metrics"][metric].pop("band")) == set(STATISTICS)
    assert set(summary["throughput"].pop("band")) == set(banded_rates())
    assert summary == without_run(plain.summary)
    for name, values in plain.requests.items():
        assert values.tobytes() == banded.requests[name].tobytes()


def test_a_band_is_around_its_figure_and_has_a_width(banded):
    for (metric, name), (figure, (low, high)) in bands_of(banded.summary).items():
        assert low <= figure <= high, (metric, name)
        assert low < high, (metric, name)


def test_bands_depend_on_nothing_but_scenario_and_number(banded):
    assert bands_of(run_with_bands(prepared(), 12, jobs=1).summary) == bands_of(banded.summary)
    assert bands_of(run_with_bands(prepared(), 12, jobs=2).summary) == bands_of(banded.summary)
    assert bands_of(run_with_bands(prepared(), 13, jobs=1).summary) != bands_of(banded.summary)


def test_prices_by_roofline_are_less_certain(banded):
    roofline = bands_of(run_with_bands(prepared("pricing.profile=roofline"), 12, jobs=1).summary)
    for statistic in STATISTICS:
        (low, high), (least, most) = bands_of(banded.summary)["tpot_s", statistic][1], roofline["tpot_s", statistic][1]
        assert most / least > high / low


def test_a_run_mostly_of_host_time_is_as_uncertain_as_its_host():
    (low, high) = bands_of(run_with_bands(prepared("host.step_s=0.1"), 40, jobs=1).summary)["tpot_s", "p50"][1]
    assert 2.5 < high / low < 4.5  # HOST_SPREAD both ways is 4


@pytest.mark.parametrize("scenario", ["multi-turn-chat", "cpu-tier"])
def test_sessions_and_tiers_are_replayed_alike_here_and_in_processes(scenario):
    path = REPOSITORY / "scenarios" / f"{scenario}.yaml"
    document = override(read_scenario(path), ["workload.requests=60"])
    here, there = (run_with_bands(Simulation.prepare(document, path.parent), 9, jobs=jobs) for jobs in (1, 2))
    assert bands_of(here.summary) == bands_of(there.summary)


@pytest.mark.parametrize("replays", [-1, 1, FEWEST_REPLAYS - 1, 10_001])
def test_a_number_that_makes_no_band_is_refused(replays):
    with pytest.raises(InputError, match=f"bands is {replays}, expected 0 for no bands, or 9 to 10000 replays"):
        run_with_bands(prepared(), replays)


def test_ends_are_percentiles_and_hold_the_figure():
    result = prepared().run()
    figures = figures_of(result)
    mean = figures["ttft_s"]["mean"]
    replayed = [
        {**figures, "ttft_s": {**figures["ttft_s"], "mean": mean * (1 + 0.1 * number)}} for number in range(1, 10)
    ]
    bands = with_bands(result, replayed).summary["metrics"]["ttft_s"]["band"]
    assert bands["mean"] == pytest.approx([mean, mean * 1.9])  # of nine the least and the most, and the figure itself
    assert bands["p50"] == [figures["ttft_s"]["p50"]] * 2


def test_what_a_replay_lacks_has_no_band():
    result = prepared().run()
    figures = figures_of(result)
    lacking = {**figures, "tpot_s": dict.fromkeys(STATISTICS)}
    banded = with_bands(result, [figures] * 8 + [lacking])
    assert banded.summary["metrics"]["tpot_s"]["band"] == dict.fromkeys(STATISTICS)
    nothing = replace(result, summary=result.summary | {"throughput": dict.fromkeys((*banded_rates(), "ci"))})
    assert with_bands(nothing, [figures] * 9).summary["throughput"]["band"] == dict.fromkeys(banded_rates())
    assert np.isfinite(banded.summary["metrics"]["ttft_s"]["band"]["mean"]).all()
