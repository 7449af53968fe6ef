"""The scenario of multi-turn chat is what it says: much of every prompt was said before."""

from pathlib import Path

import numpy as np

from simcore.build.simulation import Simulation
from simcore.scenario import read_scenario

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"


def test_most_prompt_tokens_were_said_before():
    simulation = Simulation.prepare(read_scenario(SCENARIOS / "multi-turn-chat.yaml"), SCENARIOS)
    workload = simulation.workload
    assert len(workload.requests) == 3000
    turns = np.bincount(workload.follow_ups.session)
    assert 4 < turns.mean() < 6
    new = workload.requests.prompt_tokens.copy()
    later = np.flatnonzero(workload.follow_ups.waits_for)
    new[later] -= workload.requests.prompt_tokens[later - 1] + workload.requests.output_tokens[later - 1]
    first = workload.follow_ups.begins
    new[first[1:]] -= 1200
    assert (new > 0).all()
    assert new.sum() < 0.15 * workload.requests.prompt_tokens.sum()
    result = simulation.run()
    assert result.summary["counts"]["finished"] == 3000
