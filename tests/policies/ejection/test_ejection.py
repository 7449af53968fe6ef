"""Who is ejected, by hand."""

import pytest

from policies.ejection.consecutive_failures import ConsecutiveFailures
from policies.ejection.latency_outlier import LatencyOutlier


def test_failures_in_a_row_eject_for_longer_each_time():
    policy = ConsecutiveFailures(failures=2, ttft_s=1.0, base_s=10.0)
    assert [policy.judge(4, ttft_s) for ttft_s in (None, 0.5, 1.5, None)] == [None, None, None, 10.0]
    policy.returned(4)
    assert [policy.judge(4, None) for _ in range(2)] == [None, 20.0]
    assert policy.judge(5, None) is None


def test_who_answers_later_than_the_others_is_ejected():
    policy = LatencyOutlier(times=2.0, window=2, eject_s=7.0, failed_s=4.0)
    assert [policy.judge(0, 1.0), policy.judge(0, 1.0)] == [None, None]
    assert [policy.judge(1, 1.0), policy.judge(1, 2.0)] == [None, None]
    assert policy.judge(1, 2.1) == 7.0
    policy.returned(1)
    assert [policy.judge(1, 0.5), policy.judge(1, None)] == [None, 7.0]


def test_no_more_than_all_can_be_out():
    with pytest.raises(ValueError, match=r"most_share is 1\.5"):
        ConsecutiveFailures(most_share=1.5)
