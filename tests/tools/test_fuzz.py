"""Whatever an input holds, the answer is a result or one sentence."""

from pathlib import Path

import pytest

from tools.fuzz.run import fuzz, input_of
from tools.fuzz.targets import TARGETS

SEEDS = 34
"""Inputs of each kind; ``make fuzz`` tries many more."""

ALWAYS_READ = ("command-line", "sweep-journal")
"""What answers by an exit code, and what passes over a line that was cut off."""


@pytest.mark.parametrize("kind", sorted(TARGETS))
def test_what_is_mutated_is_valid_before(kind, tmp_path):
    for number, content in enumerate(TARGETS[kind].seeds):
        folder = tmp_path / str(number)
        folder.mkdir()
        TARGETS[kind].read(content, Path(folder))


@pytest.mark.parametrize("kind", sorted(TARGETS))
def test_mutated_inputs_are_answered_rightly(kind):
    outcome = fuzz([kind], range(SEEDS))
    assert outcome.failures == []
    assert outcome.tried == SEEDS
    assert sum(outcome.refused.values()) > 0 or kind in ALWAYS_READ


def test_a_seed_makes_the_same_input_again():
    assert [input_of("hardware", seed) for seed in range(9)] == [input_of("hardware", seed) for seed in range(9)]
