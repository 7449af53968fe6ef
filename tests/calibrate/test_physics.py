"""What no machine can have measured is told in a sentence and left out."""

import numpy as np
import pytest

from calibrate.fit.fitted import Fitted
from calibrate.physics import broken_fit, nonsense, without_nonsense
from calibrate.samples import SampleTable
from simcore.cost.calibrated.table import KernelTable
from simcore.hardware import load_accelerator

H200 = load_accelerator("h200-sxm")
TOKENS = np.array([1, 8, 64, 512, 4096])


def gemms(latency_s, tokens=TOKENS):
    columns = {"dtype": np.full(len(tokens), "bf16"), "tokens": np.array(tokens)}
    columns |= {name: np.full(len(tokens), 4096) for name in ("n", "k")}
    lines = np.arange(1, len(tokens) + 1)
    return SampleTable("gemm", "h200-sxm", "own", "1", columns, np.array(latency_s), "x", lines)


def plausible_s():
    return 1e-5 + 2.0 * TOKENS * 4096 * 4096 / 7e14


def test_what_may_be_is_kept():
    samples = gemms(plausible_s())
    assert nonsense(samples, H200) == []
    assert len(without_nonsense(samples, H200)[0]) == len(TOKENS)


def test_faster_than_the_roofline():
    latency_s = plausible_s()
    latency_s[4] /= 3
    kept, told = without_nonsense(gemms(latency_s), H200)
    assert kept.columns["tokens"].tolist() == [1, 8, 64, 512]
    assert len(told) == 1
    assert "faster than the roofline of h200-sxm allows, as 1 of 5 samples of gemm are." in told[0]


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_one_sample_in_another_unit(factor):
    latency_s = plausible_s()
    latency_s[2] *= factor
    kept, told = without_nonsense(gemms(latency_s), None)
    assert 64 not in kept.columns["tokens"].tolist()
    assert "milliseconds for microseconds?" in told[0]


def test_all_samples_in_another_unit():
    kept, told = without_nonsense(gemms(1e3 * plausible_s()), H200)
    assert len(kept) == 0
    assert told == [
        "The large GEMMs in bf16 take 1,485 times what the roofline of h200-sxm says: milliseconds for microseconds, "
        "or another device?"
    ]


def test_a_curve_that_falls():
    kept, told = without_nonsense(gemms(plausible_s()[::-1]), None)
    assert len(kept) == 0
    assert told[0].endswith("falls as tokens grow, where it must rise.")


def test_a_fit_that_is_negative_or_falls():
    def fitted(*latency_s):
        keys = ("dtype", "tokens_multiple_of", "n", "k")
        return Fitted(KernelTable(keys, [("bf16", 1, 64, 32)], np.array([1.0, 2.0, 4.0]), np.array([latency_s])))

    assert broken_fit("gemm", fitted(1e-6, 2e-6, np.nan)) is None
    negative = broken_fit("gemm", fitted(1e-6, -2e-6, 3e-6))
    assert negative is not None
    assert "-2e-06 s at dtype bf16, tokens_multiple_of 1, n 64, k 32: not above 0" in negative
    falling = broken_fit("gemm", fitted(2e-6, 1e-6, 3e-6))
    assert falling is not None
    assert "falls where it must rise" in falling
