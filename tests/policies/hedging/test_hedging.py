"""When copies are sent, by hand."""

import pytest

from policies.hedging.fixed_delay import FixedDelay
from policies.hedging.percentile_delay import PercentileDelay
from tests.policies.admission.test_admission_policies import Sent


def test_a_fixed_delay_is_that_of_all():
    assert FixedDelay(0.3).delay_s(Sent()) == 0.3


def test_a_percentile_is_of_the_last_ones_once_there_are_so_many():
    policy = PercentileDelay(percent=50.0, window=3)
    for ttft_s, delay_s in ((5.0, None), (1.0, None), (3.0, 3.0), (9.0, 3.0), (9.0, 9.0), (1.0, 9.0), (1.0, 1.0)):
        policy.answered(Sent(), ttft_s)
        assert policy.delay_s(Sent()) == delay_s


def test_there_is_no_percentile_beyond_all():
    with pytest.raises(ValueError, match="percent is 101"):
        PercentileDelay(percent=101.0)
