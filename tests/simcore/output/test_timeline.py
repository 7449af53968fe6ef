import io
import json

import numpy as np
import pytest

from simcore.core.errors import FileError, InputError
from simcore.core.result import Result
from simcore.output.timeline import write_timeline

NAN = float("nan")


def table(names, rows, text=()):
    return {
        name: np.array(column, dtype=np.str_ if name in text else np.float64 if name.endswith("_s") else np.int64)
        for name, column in zip(names, zip(*rows, strict=True) if rows else [[]] * len(names), strict=True)
    }


def result_of(request_rows, step_rows):
    request_names = ("request_id", "state", "reason", "replica", "prompt_tokens", "output_tokens")
    request_names += ("arrival_s", "first_scheduled_s", "first_token_s", "end_s", "preemptions")
    step_names = ("replica", "start_s", "end_s", "steps", "prefill_tokens", "decoding_requests")
    step_names += ("running_requests", "waiting_requests", "used_blocks", "context_tokens", "preempted_requests")
    requests = table(request_names, request_rows, text=("state", "reason"))
    steps = table(step_names, step_rows)
    each_s = (steps["end_s"] - steps["start_s"]) / np.maximum(steps["steps"], 1)
    steps |= {"first_step_s": each_s, "last_step_s": each_s, "used_blocks_at_end": steps["used_blocks"].copy()}
    return Result(scenario={}, summary={}, requests=requests, steps=steps, token_gaps={})


REQUESTS = [
    (0, "finished", "", 0, 512, 11, 0.0, 0.5, 1.0, 2.0, 1),
    (1, "rejected", 'too "long"', 1, 9000, 0, 0.25, NAN, NAN, 0.25, 0),
    (2, "unfinished", "", 1, 40, 0, 2.0, NAN, NAN, NAN, 0),
]
STEPS = [
    (0, 0.5, 1.0, 1, 512, 0, 1, 0, 32, 0, 0),
    (0, 1.0, 1.5, 1, 0, 1, 1, 3, 32, 513, 0),
    (1, 1.25, 1.75, 1, 512, 12, 13, 0, 90, 4000, 2),
    (0, 1.5, 2.0, 9, 0, 1, 1, 3, 33, 514, 0),
    (0, 2.5, 3.000001, 1, 0, 0, 0, 1, 0, 0, 1),
]


def written(result, **options):
    stream = io.StringIO()
    write_timeline(result, stream, **options)
    return json.loads(stream.getvalue())


def events(document, phase):
    return [event for event in document["traceEvents"] if event["ph"] == phase]


def counter(document, pid, name):
    return [
        (event["ts"], *event["args"].values())
        for event in sorted(events(document, "C"), key=lambda event: event["ts"])
        if event["pid"] == pid and event["name"] == name
    ]


@pytest.fixture(scope="module")
def document():
    return written(result_of(REQUESTS, STEPS))


def test_each_replica_is_a_process(document):
    names = {event["pid"]: event["args"]["name"] for event in events(document, "M") if event["name"] == "process_name"}
    assert names == {2: "replica 0", 3: "replica 1"}


def test_steps_say_what_they_did(document):
    steps = [(event["pid"], event["ts"], event["dur"], event["name"]) for event in events(document, "X")]
    assert steps == [
        (2, 500_000, 500_000, "prefill 512"),
        (2, 1_000_000, 500_000, "decode 1"),
        (3, 1_250_000, 500_000, "prefill 512 + decode 12"),
        (2, 1_500_000, 500_000, "decode 1, 9 steps"),
        (2, 2_500_000, 500_001, "no tokens"),
    ]
    assert events(document, "X")[2]["args"] == {
        "steps": 1,
        "prefill_tokens": 512,
        "decoding_requests": 12,
        "running_requests": 13,
        "waiting_requests": 0,
        "used_blocks": 90,
        "context_tokens": 4000,
        "preempted_requests": 2,
    }


def test_counters_hold_and_fall_to_zero_when_idle(document):
    assert counter(document, 2, "running") == [(500_000, 1), (2_000_000, 0), (3_000_001, 0)]
    assert counter(document, 2, "waiting") == [
        (500_000, 0),
        (1_000_000, 3),
        (2_000_000, 0),
        (2_500_000, 1),
        (3_000_001, 0),
    ]
    assert counter(document, 3, "KV blocks") == [(1_250_000, 90), (1_750_000, 0)]


def test_memory_is_seen_to_fill_during_a_row_of_steps():
    """Four steps of 1 s each in which blocks go from 10 to 13, and then none are in use."""
    result = result_of([], [(0, 0.0, 4.0, 4, 0, 1, 1, 0, 10, 0, 0)])
    result.steps["used_blocks_at_end"][:] = 13
    filled = [(0, 10), (1_000_000, 11), (2_000_000, 12), (3_000_000, 13)]
    assert counter(written(result), 2, "KV blocks") == [*filled, (4_000_000, 0)]
    assert len(events(written(result), "C")) == 3 + 3 + 3


def test_requests_have_phases(document):
    spans = [
        (event["ph"], event["name"], event["ts"])
        for event in document["traceEvents"]
        if event.get("cat") == "request" and event["id"] == 0
    ]
    assert spans == [
        ("b", "request", 0),
        ("b", "queue", 0),
        ("e", "queue", 500_000),
        ("b", "prefill", 500_000),
        ("e", "prefill", 1_000_000),
        ("b", "decode", 1_000_000),
        ("e", "decode", 2_000_000),
        ("e", "request", 2_000_000),
    ]


def test_rejected_and_unfinished_requests_are_told_apart(document):
    (rejected,) = events(document, "i")
    assert (rejected["name"], rejected["ts"], rejected["pid"]) == ("request 1 rejected", 250_000, 3)
    assert rejected["args"]["reason"] == 'too "long"'
    unfinished = [(event["name"], event["ts"]) for event in document["traceEvents"] if event.get("id") == 2]
    assert unfinished == [("request", 2_000_000), ("queue", 2_000_000), ("queue", 3_000_001), ("request", 3_000_001)]
    assert next(event for event in document["traceEvents"] if event.get("id") == 2)["args"]["state"] == "unfinished"


@pytest.mark.parametrize("limit", [1, 2, 5, 20, 31, 32, 40, 64, 100, 1000])
def test_the_limit_holds_and_what_it_leaves_out_is_stated(limit):
    document = written(result_of(REQUESTS * 3, STEPS), max_events=limit)
    timed = [event for event in document["traceEvents"] if event["ph"] != "M"]
    assert len(timed) <= limit
    rows = len(events(document, "X"))
    kept = {"requests": 9, "rows_of_steps": 5}
    notes = [event for event in timed if event.get("s") == "g"]
    if limit == 1000:
        assert notes == []
        assert document["otherData"] == kept
    else:
        missing = document["otherData"]["left_out"]
        assert missing == notes[0]["args"]
        assert missing["rows_of_steps"] == 5 - rows
        told = sum(event["name"] == "request" and event["ph"] == "b" for event in timed)
        told += sum(event["name"] == "request 1 rejected" for event in timed)
        assert missing["requests"] == 9 - told > 0
        assert notes[0]["ts"] == (round(STEPS[rows][1] * 1e6) if rows < 5 else 3_000_001)


def test_the_same_result_gives_the_same_bytes(tmp_path, document):
    for name in ("one.json", "two.json"):
        write_timeline(result_of(REQUESTS, STEPS), tmp_path / name)
    first, second = ((tmp_path / name).read_bytes() for name in ("one.json", "two.json"))
    assert first == second
    assert json.loads(first) == document


def test_a_run_without_requests_is_an_empty_timeline():
    assert written(result_of([], []))["traceEvents"] == []


def test_bad_input(tmp_path):
    with pytest.raises(InputError, match="max_events is 0"):
        write_timeline(result_of([], []), io.StringIO(), max_events=0)
    with pytest.raises(FileError, match="cannot be written"):
        write_timeline(result_of([], []), tmp_path / "missing" / "timeline.json")


def test_batches_in_flight_have_tracks_of_their_own():
    rows = [(0, start_s, end_s, 1, 0, 2, 2, 0, 4, 40, 0) for start_s, end_s in ((0, 2), (1, 3), (2, 4), (3, 5))]
    stream = io.StringIO()
    write_timeline(result_of(REQUESTS[:1], rows), stream)
    steps = [event for event in json.loads(stream.getvalue())["traceEvents"] if event["ph"] == "X"]
    assert [event["ts"] for event in steps] == [0, 1_000_000, 2_000_000, 3_000_000]
    tracks = [event["tid"] for event in steps]
    assert tracks[0] == tracks[2] != tracks[1] == tracks[3]
