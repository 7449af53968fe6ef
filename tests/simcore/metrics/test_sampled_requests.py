"""Rows of requests from the rows of their samples."""

import numpy as np

from simcore.core.request import Request
from simcore.metrics.tables import request_table
from simcore.recording.recorder import Recorder

SECOND = 10**9


def sample(number, arrival_s, scheduled_s=None, first_s=None, cached=0, preemptions=0):
    request = Request(number, arrival_s * SECOND, 100, cached_tokens=cached, preemptions=preemptions)
    if scheduled_s is not None:
        request.first_scheduled_ns = scheduled_s * SECOND
    if first_s is not None:
        request.first_token_ns = first_s * SECOND
    return request


def test_a_request_is_done_when_all_its_samples_are():
    recorder = Recorder()
    recorder.request_finished(sample(1, 0, 2, 4, cached=96, preemptions=1), 0, 14 * SECOND, 6)
    recorder.request_finished(sample(0, 0, 1, 3, cached=16), 0, 7 * SECOND, 2)
    recorder.request_finished(sample(2, 5, 6, 7), 0, 8 * SECOND, 1)
    recorder.request_unfinished(sample(3, 5), 0)
    recorder.request_finished(sample(4, 9, 10, 11), 0, 12 * SECOND, 1)
    recorder.request_rejected(sample(5, 9), 0, 9 * SECOND, "too much")
    table = request_table(recorder, samples=2)
    assert table["request_id"].tolist() == [0, 1, 2]
    assert table["state"].tolist() == ["finished", "unfinished", "rejected"]
    assert table["reason"].tolist() == ["", "", "too much"]
    assert table["prompt_tokens"].tolist() == [100, 100, 100]
    assert table["output_tokens"].tolist() == [8, 1, 1]
    assert table["cached_tokens"].tolist() == [16, 0, 0]
    assert table["preemptions"].tolist() == [1, 0, 0]
    assert table["first_scheduled_s"].tolist() == [1, 6, 10]
    assert table["ttft_s"].tolist() == [3, 2, 2]
    np.testing.assert_array_equal(table["e2e_s"], [14, np.nan, np.nan])
    np.testing.assert_array_equal(table["end_s"], [14, np.nan, 12])
    np.testing.assert_array_equal(table["tpot_s"], [(4 / 1 + 10 / 5) / 2, np.nan, np.nan])


def test_one_sample_each_changes_nothing():
    recorder = Recorder()
    recorder.request_finished(sample(0, 0, 1, 3, cached=16), 0, 7 * SECOND, 2)
    recorder.request_unfinished(sample(1, 5), 0)
    alone = request_table(recorder)
    assert alone["request_id"].tolist() == [0, 1]
    np.testing.assert_array_equal(alone["tpot_s"], [4, np.nan])
