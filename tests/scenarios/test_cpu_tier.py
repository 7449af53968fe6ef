"""The scenario with a CPU tier needs it: what users come back to does not fit GPU memory."""

from pathlib import Path

import pytest

from simcore.build.simulation import Simulation
from simcore.output.timeline import write_timeline
from simcore.scenario import read_scenario
from simcore.scenario.reading import override

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"


@pytest.fixture(scope="module")
def document():
    return read_scenario(SCENARIOS / "cpu-tier.yaml")


def test_a_tier_keeps_what_gpu_memory_cannot(document, tmp_path):
    tiered = Simulation.prepare(document, SCENARIOS).run()
    alone = Simulation.prepare(override(document, ["memory.tiers=[]"]), SCENARIOS).run()
    assert alone.summary["kv"]["prefix_hit_rate"] < 0.4
    assert tiered.summary["kv"]["prefix_hit_rate"] > 0.8
    assert tiered.summary["kv"]["tiers"]["cpu"]["hit_rate"] > 0.5
    ttft_s = [result.summary["metrics"]["ttft_s"]["p99"] for result in (tiered, alone)]
    assert ttft_s[0] < 0.1 * ttft_s[1]
    assert tiered.summary["slo"]["ttft_s.p99"]["met"]
    write_timeline(tiered, tmp_path / "timeline.json")
    text = (tmp_path / "timeline.json").read_text()
    assert text.count('"name":"load"') == tiered.summary["links"]["CPU to GPU"]["transfers"]
    assert '"args":{"name":"GPU to CPU"}' in text
