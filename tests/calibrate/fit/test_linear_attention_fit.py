"""Gated delta rule layers: fits that follow what was measured and never fall, and what profiles leave out."""

from itertools import product

import numpy as np
import pytest

from calibrate.fit.held_out import FITS, fit_and_check
from calibrate.samples import SHAPE_COLUMNS, SampleTable
from calibrate.ship import trimmed
from simcore.core.errors import FileError, UnknownNameError

HEADS = [(key_heads, group * key_heads) for key_heads in (1, 2, 4, 8, 16) for group in (1, 2, 4)]


def measured(noise=0.0, **changed):
    """A floor, and a time for each chunk of a state, as many states at once as there are processors."""
    prompts = [("context", *heads, 128, 128, 1 << b, 1 << t) for heads in HEADS for b in range(7) for t in range(16)]
    decodes = [("generation", *heads, 128, 128, 1 << b, 1) for heads, b in product(HEADS, range(11))]
    names = SHAPE_COLUMNS["linear_attention"]
    columns = dict(zip(names, map(np.array, zip(*(prompts + decodes), strict=True)), strict=True)) | changed
    waves = np.maximum(columns["value_heads"] * columns["batch"] / 132, 1.0)
    latency_s = 20e-6 + 1e-6 * waves * (1 + columns["tokens"] / 64)
    latency_s *= np.exp(np.random.default_rng(0).normal(0.0, noise, len(latency_s)))
    return SampleTable("linear_attention", "l4", "vllm", "0", columns, latency_s, "x", np.arange(len(latency_s)) + 1)


def test_fits_keep_what_was_measured_and_predict_what_was_not():
    samples, fit = measured(), FITS["linear_attention"]
    logs = np.log(fit.predict(fit.fit(samples), samples) / samples.latency_s)
    assert np.quantile(np.abs(logs), 0.95) < 0.01
    errors = fit_and_check(samples).errors
    assert set(errors) == {"all", "context", "generation"}
    assert errors["all"].points == errors["context"].points + errors["generation"].points
    assert errors["all"].median < 0.01
    assert errors["all"].p90 < 0.05


def test_no_noise_makes_a_table_fall():
    table = FITS["linear_attention"].fit(measured(noise=0.2)).table
    steps = np.diff(table.latency_s, axis=1)
    assert np.all(steps[~np.isnan(steps)] >= 0)
    for (phase, *_), (keys, latency_s) in table.families(5).items():
        assert keys[:, 0].tolist() == sorted(keys[:, 0])
        assert np.all(np.diff(latency_s[:, 0]) >= 0), phase


def test_tables_reach_as_far_as_launches_were_measured():
    samples = measured()
    launch = samples.columns["batch"] * samples.columns["tokens"]
    table = FITS["linear_attention"].fit(samples.select(launch <= 4096)).table
    for (phase, *_, batch), latency_s in zip(table.rows, table.latency_s, strict=True):
        last = table.knots[~np.isnan(latency_s)][-1]
        assert last == (1 if phase == "generation" else 4096 / batch)


def test_an_unknown_phase_is_refused():
    with pytest.raises(UnknownNameError, match=r"x: phase.*'prefill'.*context"):
        fit_and_check(measured(phase=np.full(len(measured()), "prefill")))


@pytest.mark.parametrize(("phase", "other"), [("context", "generation"), ("generation", "context")])
def test_one_phase_alone_is_refused(phase, other):
    samples = measured()
    with pytest.raises(FileError, match=f"x: no linear_attention of phase {other}, expected both"):
        fit_and_check(samples.select(samples.columns["phase"] == phase))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("value_heads", 3, "line 1681: value_heads is 3, expected a multiple of the key heads"),
        ("tokens", 2, "line 1681: tokens is 2, expected 1 in generation"),
        ("batch", 0, "line 1681: batch is 0"),
    ],
)
def test_launches_that_cannot_be_are_refused(column, value, message):
    samples = measured()
    samples.columns["key_heads"][1680] = samples.columns["value_heads"][1680] = 2
    samples.columns[column][1680] = value
    with pytest.raises(FileError, match=message):
        samples.checked()


def test_profiles_leave_out_large_launches():
    samples = measured()
    kept = trimmed(samples)
    assert len(kept) == (samples.columns["batch"] * samples.columns["tokens"] <= 32768).sum() < len(samples)
    assert (kept.columns["batch"] * kept.columns["tokens"]).max() == 32768
