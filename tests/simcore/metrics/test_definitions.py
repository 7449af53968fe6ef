import numpy as np

from simcore.core.request import UNSET, Request
from simcore.metrics.definitions import between_s, normalised_latency_s, time_per_output_token_s
from simcore.metrics.tables import request_table, step_table
from simcore.recording.recorder import Recorder


def test_times_that_never_came_have_no_difference():
    start, end = np.array([0, 5_000_000_000, UNSET]), np.array([2_000_000_000, UNSET, 7])
    assert np.array_equal(between_s(start, end), [2.0, np.nan, np.nan], equal_nan=True)


def test_a_single_token_has_no_time_per_output_token():
    first, end = np.array([1_000_000_000] * 3), np.array([1_000_000_000, 3_000_000_000, UNSET])
    tpot = time_per_output_token_s(first, end, np.array([1, 5, 5]))
    assert np.array_equal(tpot, [np.nan, 0.5, np.nan], equal_nan=True)


def test_normalised_latency_is_per_output_token():
    assert normalised_latency_s({"e2e_s": np.array([6.0]), "output_tokens": np.array([3])}).tolist() == [2.0]


def test_a_row_of_each_kind():
    recorder = Recorder()
    finished = Request(1, 1_000_000_000, 10, first_scheduled_ns=2_000_000_000, first_token_ns=3_000_000_000)
    cut_off = Request(2, 2_000_000_000, 20, first_scheduled_ns=4_000_000_000)
    recorder.request_unfinished(cut_off, 0)
    recorder.request_finished(finished, 1, 5_000_000_000, 5)
    recorder.request_rejected(Request(0, 500_000_000, 30), -1, 500_000_000, "too long")
    table = request_table(recorder)
    assert table["request_id"].tolist() == [0, 1, 2]
    assert table["state"].tolist() == ["rejected", "finished", "unfinished"]
    assert table["reason"].tolist() == ["too long", "", ""]
    expected = {
        "queue_s": [np.nan, 1.0, 2.0],
        "ttft_s": [np.nan, 2.0, np.nan],
        "tpot_s": [np.nan, 0.5, np.nan],
        "e2e_s": [np.nan, 4.0, np.nan],
        "end_s": [0.5, 5.0, np.nan],
    }
    for name, column in expected.items():
        assert np.array_equal(table[name], column, equal_nan=True), name


def test_steps_are_sorted_by_start_and_replica():
    recorder = Recorder()
    for replica, start_ns in ((1, 0), (0, 20), (0, 0)):
        recorder.steps_run([replica, start_ns, start_ns + 10, 10, 10, 1, 0, 2, 2, 0, 1, 1, 9, 0])
    table = step_table(recorder)
    assert table["replica"].tolist() == [0, 1, 0]
    assert table["start_s"].tolist() == [0.0, 0.0, 2e-8]
