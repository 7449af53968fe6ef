"""Turns of recorded chats that wait for answers, as a scenario asks for it."""

import json

import numpy as np
import pytest

from experiments.comparison import plan_comparison
from simcore.build.simulation import Simulation
from simcore.core.errors import FileError, InputError

TOKENS = 16


def chat_row(chat, follows, at_s, prompt=64, output=200):
    blocks = -(-prompt // TOKENS)
    return {
        "chat_id": chat,
        "parent_chat_id": follows,
        "timestamp": at_s,
        "input_length": prompt,
        "output_length": output,
        "turn": 1,
        "hash_ids": list(range(chat * 1000, chat * 1000 + blocks)),
    }


CHATS = [chat_row(10, -1, 0.0), chat_row(11, 10, 0.1), chat_row(12, -1, 0.2), chat_row(13, 11, 60.0)]


def served(folder, rows, **workload):
    (folder / "chats.jsonl").write_text("\n".join(map(json.dumps, rows)))
    scenario = {
        "model": "qwen2.5-0.5b",
        "cluster": {"accelerator": "a100-sxm-80gb"},
        "workload": {"trace": "chats.jsonl"} | workload,
    }
    result = Simulation.prepare(scenario, folder).run()
    order = np.argsort(result.requests["request_id"])
    return {name: np.asarray(result.requests[name])[order] for name in ("arrival_s", "end_s")}, result.summary


def test_a_turn_is_sent_as_recorded_but_not_before_the_answer_that_it_goes_on_from(tmp_path):
    recorded, _ = served(tmp_path, CHATS)
    np.testing.assert_allclose(recorded["arrival_s"], [0.0, 0.1, 0.2, 60.0])
    assert recorded["end_s"][0] > 0.3
    waited, summary = served(tmp_path, CHATS, turns="closed-loop")
    np.testing.assert_allclose(waited["arrival_s"][[0, 2, 3]], [0.0, 0.2, 60.0])
    assert waited["arrival_s"][1] == pytest.approx(waited["end_s"][0], abs=0.01)
    assert "2 turns of chats arrive as recorded, or with the answer before them" in "".join(summary["notices"])


def test_a_turn_whose_chat_began_before_the_window_begins_one(tmp_path):
    waited, _ = served(tmp_path, CHATS, turns="closed-loop", window_s=[0.05, 100.0])
    np.testing.assert_allclose(waited["arrival_s"], [0.05, 0.15, 59.95])


def test_columns_of_a_file_of_ones_own_may_name_turns(tmp_path):
    rows = [
        {"arrival_s": 0, "prompt_tokens": 30, "output_tokens": 300, "name": "a", "after": ""},
        {"arrival_s": 0.01, "prompt_tokens": 30, "output_tokens": 5, "name": "b", "after": "a"},
    ]
    columns = {"chat": "name", "follows": "after"}
    waited, _ = served(tmp_path, rows, turns="closed-loop", columns=columns)
    assert waited["arrival_s"][1] == pytest.approx(waited["end_s"][0], abs=0.01)


@pytest.mark.parametrize(
    ("rows", "workload", "said"),
    [
        ([*CHATS, CHATS[-1]], {}, "names two requests alike"),
        ([chat_row(1, 2, 0.0), chat_row(2, -1, 1.0)], {}, "request 1 goes on from a later one"),
        ([CHATS[0] | {"chat_id": 1.5}], {}, "chat_id is 1.5, expected text or a whole number"),
        (CHATS, {"resample": True}, "expected false with turns that wait for answers"),
        (
            [{"arrival_s": 0, "prompt_tokens": 30, "output_tokens": 3}],
            {},
            "workload.turns is 'closed-loop', expected recorded, since .* does not say which requests follow which",
        ),
    ],
)
def test_what_cannot_wait_is_refused(tmp_path, rows, workload, said):
    with pytest.raises((FileError, InputError), match=said):
        served(tmp_path, rows, turns="closed-loop", **workload)


def test_a_comparison_leaves_chats_whole(tmp_path):
    served(tmp_path, CHATS)
    scenario = {
        "model": "qwen2.5-0.5b",
        "cluster": {"accelerator": "a100-sxm-80gb"},
        "workload": {"trace": "chats.jsonl", "turns": "closed-loop"},
    }
    with pytest.raises(InputError, match="expected 1, since the requests are the same whatever the seed"):
        plan_comparison(scenario, tmp_path, {"cluster.replicas": [1, 2]}, seeds=2)
