"""Turns of recorded chats that wait for answers, as a scenario asks for it."""

import json

import numpy as np
import pytest

from experiments.comparison import plan_comparison
from simcore.build.simulation import Simulation
from simcore.core.errors import FileError, InputError
from simcore.workload import build_workload
from simcore.workload.config import TraceWorkload

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
        (CHATS, {"resample": True}, "workload.resample is true, expected a trace of at least 40 chats"),
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


def many_chats():
    """60 chats of one to four turns, which begin a second apart and have a turn every 0.7 s."""
    turns = [(chat, turn) for chat in range(60) for turn in range(1 + chat % 4)]
    rows = [
        chat_row(10 * chat + turn, 10 * chat + turn - 1 if turn else -1, chat + 0.7 * turn, prompt=16 * (1 + turn))
        | {"hash_ids": [100 * chat + block for block in range(1 + turn)]}
        for chat, turn in turns
    ]
    return sorted(rows, key=lambda row: row["timestamp"])


@pytest.mark.parametrize("turns", ["recorded", "closed-loop"])
def test_chats_are_drawn_whole(tmp_path, turns):
    (tmp_path / "chats.jsonl").write_text("\n".join(map(json.dumps, many_chats())))

    def drawn(seed):
        section = TraceWorkload(trace="chats.jsonl", resample=True, turns=turns)
        return build_workload(section, seed, tmp_path)

    one = drawn(1)
    assert "chats were drawn anew by the seed" in one.notices[0]
    assert one.notices[0].endswith("around its end, each of them whole.")
    requests = one.requests
    assert np.array_equal(requests.arrival_ns, drawn(1).requests.arrival_ns)
    assert not np.array_equal(requests.arrival_ns, drawn(2).requests.arrival_ns)
    assert (np.diff(requests.arrival_ns) >= 0).all()
    # A copy's prompts begin with the same block, and are one block longer with each turn, 0.7 s after the one before.
    first = requests.contents.run_first[requests.contents.offsets[:-1]]
    for block in np.unique(first):
        of_chat = np.flatnonzero(first == block)
        assert requests.prompt_tokens[of_chat].tolist() == [16 * (1 + turn) for turn in range(len(of_chat))]
        np.testing.assert_allclose(np.diff(requests.arrival_ns[of_chat]), 0.7e9)
    sizes = np.unique(first, return_counts=True)[1]
    assert set(sizes.tolist()) == {1, 2, 3, 4}
    if turns == "closed-loop":
        follow_ups = one.follow_ups
        assert np.array_equal(follow_ups.waits_for, (requests.prompt_tokens > 16).astype(int))
        before = np.repeat(np.arange(len(follow_ups)), np.diff(follow_ups.offsets))
        assert np.array_equal(first[before], first[follow_ups.followers])
        assert (requests.prompt_tokens[follow_ups.followers] == requests.prompt_tokens[before] + 16).all()


def test_a_comparison_draws_chats_anew(tmp_path):
    (tmp_path / "chats.jsonl").write_text("\n".join(map(json.dumps, many_chats())))
    scenario = {
        "model": "qwen2.5-0.5b",
        "cluster": {"accelerator": "a100-sxm-80gb"},
        "workload": {"trace": "chats.jsonl", "turns": "closed-loop"},
    }
    found = plan_comparison(scenario, tmp_path, {"cluster.replicas": [1, 2]}, seeds=2)
    assert [run.document["workload"]["resample"] for run in found.runs] == [True] * 4
