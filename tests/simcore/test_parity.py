"""The scheduler against recorded decisions of a real one (vLLM V1), step by step."""

import json

import pytest

from simcore.errors import FileError, InputError
from simcore.parity import first_difference, read_recording

KINDS = (
    "steady",
    "burst",
    "few-slots",
    "capped-prefill",
    "long-prompts",
    "kv-pressure",
    "kv-pressure-no-reserve",
    "priority",
    "shared-prefix",
    "shared-prefix-pressure",
)


@pytest.fixture
def recordings(shared_data):
    return shared_data.parent / "oracle"


@pytest.mark.parametrize("name", [f"{kind}-{run}" for kind in KINDS for run in (1, 2)])
def test_every_decision_equals_the_recorded_one(name, recordings):
    assert first_difference(read_recording(recordings / f"{name}.json")) is None


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("free_blocks_after", lambda step: step.update(free_blocks_after=step["free_blocks_after"] - 1)),
        ("scheduled", lambda step: step.update(scheduled=dict(reversed(step["scheduled"].items())))),
        ("finished", lambda step: step.update(finished=[0])),
        ("preempted", lambda step: step.update(preempted=[1])),
        ("cached_tokens", lambda step: step.update(cached_tokens={"1": 16})),
    ],
)
def test_one_changed_decision_is_found(what, change, recordings, tmp_path):
    document = json.loads((recordings / "burst-1.json").read_text())
    assert len(document["steps"][20]["scheduled"]) > 1
    change(document["steps"][20])
    (tmp_path / "changed.json").write_text(json.dumps(document))
    difference = first_difference(read_recording(tmp_path / "changed.json"))
    assert (difference.step, difference.what) == (20, what)
    assert f"step 20, {what}: recorded" in str(difference)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda document: document["requests"].append(document["requests"][0]), "ids all differ"),
        (lambda document: document["requests"][0].update(prompt=[]), "prompt"),
        (lambda document: document["requests"][0].update(prompt=[[5, -1]]), "prompt"),
        (lambda document: document.update(steps=[]), "steps"),
    ],
)
def test_a_recording_that_cannot_be_is_refused(change, said, recordings, tmp_path):
    document = json.loads((recordings / "burst-1.json").read_text())
    change(document)
    (tmp_path / "changed.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=said):
        read_recording(tmp_path / "changed.json")


def test_what_is_no_recording_is_refused(tmp_path):
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(FileError, match="not valid JSON"):
        read_recording(tmp_path / "broken.json")
    with pytest.raises(FileError, match="no such file"):
        read_recording(tmp_path / "missing.json")
    (tmp_path / "empty.json").write_text("{}")
    with pytest.raises(InputError, match="config is missing"):
        read_recording(tmp_path / "empty.json")
