"""Norms and activations: fits that follow what was measured and never fall."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.fit.elementwise import ElementwiseFit
from calibrate.fit.held_out import fit_and_check
from calibrate.samples import SampleTable
from simcore.core.errors import UnknownNameError

TOKENS = np.unique(np.geomspace(1, 2048, 60).astype(np.int64))
WIDTHS = (8192, 32768)


def measured(noise=0.0, operator="norm", seed=0):
    tokens, width = np.tile(TOKENS, len(WIDTHS)), np.repeat(WIDTHS, len(TOKENS))
    count = len(tokens)
    latency_s = 2e-6 + tokens * width / 1e12
    latency_s *= np.exp(np.random.default_rng(seed).normal(0.0, noise, count))
    columns = {"operator": np.full(count, operator), "bytes_per_token": width, "tokens": tokens}
    return SampleTable("elementwise", "l4", "vllm", "0", columns, latency_s, "x.csv", np.arange(1, count + 1))


def test_fits_keep_what_was_measured():
    samples, fit = measured(), ElementwiseFit()
    assert fit.predict(fit.fit(samples), samples) == pytest.approx(samples.latency_s, rel=0.005)


@given(st.integers(0, 1000))
def test_no_noise_makes_a_table_fall(seed):
    table = ElementwiseFit().fit(measured(noise=0.2, seed=seed)).table
    assert np.all(np.diff(table.latency_s, axis=1) >= 0)


def test_held_out_errors_are_stated_by_operator():
    checked = fit_and_check(measured(noise=0.01))
    assert set(checked.errors) == {"all", "norm"}
    assert checked.errors["norm"].points == pytest.approx(2 * len(TOKENS) / 5, abs=1)
    assert 0.0 < checked.errors["norm"].median < 0.02


def test_an_operator_that_nothing_prices_is_refused():
    with pytest.raises(UnknownNameError, match=r"x\.csv: operator.*'normal'.*norm"):
        fit_and_check(measured(operator="normal"))


def test_another_width_stands_in_for_none_in_held_out_errors():
    samples, fit = measured(), ElementwiseFit()
    wide = samples.columns["bytes_per_token"] == WIDTHS[1]
    assert np.isnan(fit.predict(fit.fit(samples.select(~wide)), samples.select(wide))).all()
