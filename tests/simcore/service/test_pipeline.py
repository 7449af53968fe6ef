from types import SimpleNamespace

import pytest

from simcore.service.pipeline import Pipeline


def pipeline(stages):
    return Pipeline(SimpleNamespace(stages=[None] * stages))


def test_batches_pass_stage_after_stage():
    """Two stages of 10 and 20: the second batch waits for the first to leave the second stage."""
    stages = pipeline(2)
    assert stages.enter(0, [10, 20], [0, 0]) == 30
    assert stages.entry_ns == 10
    assert stages.enter(10, [10, 20], [0, 0]) == 50
    assert stages.enter(100, [10, 20], [0, 0]) == 130
    assert stages.computed_ns == 90
    # From 0 to 50 and from 100 to 130 something was under way: 2 x 80 of which 90 were computed in.
    assert stages.bubble_share == pytest.approx(1 - 90 / 160)


def test_a_stage_is_held_until_the_next_has_what_it_sends():
    stages = pipeline(3)
    assert stages.enter(0, [10, 10, 10], [5, 5, 0]) == 40
    assert stages.entry_ns == 15
    assert stages.sent_ns == 10


def test_equal_stages_have_no_bubbles_when_full():
    """The bubbles of m batches through p stages are (p - 1) of m + p - 1 (GPipe, section 2)."""
    stages = pipeline(4)
    for _ in range(12):
        stages.enter(stages.entry_ns, [7] * 4, [0] * 4)
    assert stages.bubble_share == pytest.approx(3 / 15)
