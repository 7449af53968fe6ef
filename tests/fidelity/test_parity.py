"""The scheduler against recorded decisions of real ones, step by step."""

import json
import os
from pathlib import Path

import pytest

from fidelity.parity import first_difference, read_recording, unread
from simcore.core.errors import FileError, InputError

DATA = Path(os.environ.get("SERVETWIN_DATA", Path(__file__).parents[3] / "shared" / "data"))
ORACLE = DATA.parent / "oracle"
FILES = sorted(
    str(path.relative_to(ORACLE))
    for folder in ("", "more", "async", "sglang")
    for path in (ORACLE / folder).glob("*.json")
)


@pytest.fixture
def recordings(shared_data):
    return shared_data.parent / "oracle"


@pytest.mark.parametrize("name", FILES or ["steady-1.json"])
def test_every_decision_equals_the_recorded_one(name, recordings):
    assert first_difference(read_recording(recordings / name)) is None


def test_each_kind_of_recording_is_told(recordings):
    kinds = {folder: read_recording(recordings / folder / "steady-1.json").kind for folder in ("", "async", "sglang")}
    assert kinds == {
        "": "vLLM V1, synchronous",
        "async": "vLLM V1, asynchronous",
        "sglang": "SGLang, without overlap",
    }


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("free_blocks_after", lambda step: step.update(free_blocks_after=step["free_blocks_after"] - 1)),
        ("scheduled", lambda step: step.update(scheduled=dict(reversed(step["scheduled"].items())))),
        ("finished", lambda step: step.update(finished=[0])),
        ("preempted", lambda step: step.update(preempted=[2, 1])),
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
    ("name", "what", "change"),
    [
        ("sglang/lpm-1.json", "evictable", lambda step: step.update(evictable=step["evictable"] + 1)),
        ("sglang/lpm-1.json", "ratio", lambda step: step.update(ratio=step["ratio"] + 1e-6)),
        ("sglang/overlap-steady-1.json", "mode", lambda step: step.update(mode="mixed")),
        ("async/steady-1.json", "finished", lambda step: step.update(finished=[0])),
        ("more/D-prompt-repeats-output.json", "free_blocks_after", lambda step: step.update(free_blocks_after=1)),
    ],
)
def test_one_changed_decision_is_found_in_every_form(name, what, change, recordings, tmp_path):
    document = json.loads((recordings / name).read_text())
    number = len(document["steps"]) // 2
    change(document["steps"][number])
    (tmp_path / "changed.json").write_text(json.dumps(document))
    difference = first_difference(read_recording(tmp_path / "changed.json"))
    assert (difference.step, difference.what) == (number, what)


def renamed(part, key, other):
    part[other] = part.pop(key)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda document: document["requests"].append(document["requests"][0]),
            r"requests\.\d+\.id is 0, expected a number that no other request has",
        ),
        (lambda document: document["requests"][0].update(prompt=[]), "expected a list that is not empty"),
        (lambda document: document["requests"][0].update(prompt=[[5, -1]]), "prompt"),
        (lambda document: document.update(steps=[]), "steps"),
        (
            lambda document: document["requests"][0].update(prompt=[[5, 9000]]),
            r"requests\.0\.prompt is 9000 tokens long, expected fewer",
        ),
        (lambda document: document["engine"].update(name="tgi"), "engine.name is 'tgi', expected one of vllm, sglang"),
        (lambda document: document["engine"].update(async_scheduling="maybe"), r"engine\.async_scheduling is 'maybe'"),
        (lambda document: document["engine"].update(batch_queue=3), r"engine\.batch_queue is 3"),
        (lambda document: document["engine"].update(speculative=4), r"engine\.speculative is an unknown field"),
        (lambda document: document["config"].update(watermark=0.1), r"config\.watermark is an unknown field"),
        (lambda document: document["config"].update(block_size=10**9), r"config\.block_size is .* at most 65,?536"),
        (lambda document: document["requests"][0].update(prompt=[[5, 10**9]]), r"requests\.0\.prompt"),
        (lambda document: document["requests"][0].update(prompt=[[10**15, 5]]), r"requests\.0\.prompt"),
        (lambda document: document["requests"][0].update(id=10**15), r"requests\.0\.id is"),
        (lambda document: renamed(document["config"], "prefix_caching", "prefix_cachng"), "mean 'prefix_caching'"),
        (lambda document: renamed(document["config"], "policy", "Polcy"), "mean 'policy'"),
        (
            lambda document: renamed(document["requests"][2], "priority", "prority"),
            r"requests\.2\.prority is an unkn",
        ),
        (lambda document: renamed(document["steps"][3], "cached_tokens", "cache_tokens"), r"steps\.3\.cache_tokens is"),
    ],
)
def test_a_recording_that_cannot_be_is_refused(change, said, recordings, tmp_path):
    document = json.loads((recordings / "burst-1.json").read_text())
    change(document)
    (tmp_path / "changed.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=said):
        read_recording(tmp_path / "changed.json")


def test_what_only_the_recorder_knows_is_named_and_not_read(recordings, tmp_path):
    document = json.loads((recordings / "burst-1.json").read_text())
    assert unread(read_recording(recordings / "burst-1.json")) == ()
    document["requests"][0]["seed"] = 3
    document["host"] = "lab"
    (tmp_path / "changed.json").write_text(json.dumps(document))
    recording = read_recording(tmp_path / "changed.json")
    assert set(unread(recording)) == {"seed", "host"}
    assert first_difference(recording) is None


def test_an_output_ends_with_the_longest_context(recordings, tmp_path):
    document = json.loads((recordings / "steady-1.json").read_text())
    lengths = [(sum(tokens for _, tokens in request["prompt"]), request["output"]) for request in document["requests"]]
    document["config"]["max_model_len"] = max(map(sum, lengths))
    longest = max(range(len(lengths)), key=lambda place: sum(lengths[place]))
    document["requests"][longest]["output"] += 500
    (tmp_path / "changed.json").write_text(json.dumps(document))
    assert first_difference(read_recording(tmp_path / "changed.json")) is None


def test_what_is_no_recording_is_refused(tmp_path):
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(FileError, match="not valid JSON"):
        read_recording(tmp_path / "broken.json")
    with pytest.raises(FileError, match="no such file"):
        read_recording(tmp_path / "missing.json")
    (tmp_path / "empty.json").write_text("{}")
    with pytest.raises(InputError, match="config is missing"):
        read_recording(tmp_path / "empty.json")


@pytest.mark.parametrize("form", ["", "async"])
def test_a_request_may_be_given_up(form, recordings, tmp_path):
    """It is never served again, and whoever waited for its slot is."""
    document = json.loads((recordings / form / "few-slots-1.json").read_text())
    first = document["requests"][0]
    last = next(number for number, step in enumerate(document["steps"]) if first["id"] in step["finished"])
    first["abort_step"] = last - 20
    (tmp_path / "changed.json").write_text(json.dumps(document))
    difference = first_difference(read_recording(tmp_path / "changed.json"))
    assert (difference.step, difference.what) == (last - 20, "scheduled")
    assert str(first["id"]) in map(str, dict(difference.recorded))
    assert first["id"] not in dict(difference.ours)
