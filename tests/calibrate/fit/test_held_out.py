"""Fits of made-up kernels find what they were made of; held-out points are every fifth."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from calibrate.fit.held_out import FITS, fit_and_check, held_out, quantiles, undisturbed
from calibrate.samples import SampleTable, joined
from simcore.cost.calibrated.base import Rates, context_work, gemm_work, generation_work

RATES = Rates(5e-6, 6e14, 3e12)


def table(kind, latency, text, **axes):
    grid = list(itertools.product(*axes.values()))
    columns = {name: np.array(values) for name, values in zip(axes, zip(*grid, strict=True), strict=True)}
    columns |= {name: np.full(len(grid), value) for name, value in text.items()}
    latency_s = latency(columns)
    return SampleTable(kind, "h100-sxm", "vllm", "1", columns, latency_s, "made-up", np.arange(1, len(grid) + 1))


def products():
    return table(
        "gemm",
        lambda c: RATES.seconds(*gemm_work("bf16", c["tokens"] * 1.0, c["n"], c["k"])),
        {"dtype": "bf16"},
        tokens=[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024, 2048, 4096],
        n=[256, 512, 1024, 1536, 2048, 4096, 8192, 16384],
        k=[256, 512, 1024, 2048, 3072, 4096, 8192, 16384],
    )


def decodes(window=0):
    shape = {"kv_dtype": "bf16", "head_dim": 128, "window": window}
    return table(
        "generation_attention",
        lambda c: RATES.seconds(
            *generation_work("bf16", c["heads"], c["kv_heads"], 128, c["batch"], c["context"] * 1.0, c["window"])
        ),
        shape,
        heads=[16, 32, 64],
        kv_heads=[2, 4, 8],
        batch=[1, 2, 4, 8, 16, 32, 64, 128],
        context=[16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192],
    )


def prompts():
    shape = {"kv_dtype": "bf16", "head_dim": 128, "window": 0, "prefix": 0}
    return table(
        "context_attention",
        lambda c: RATES.seconds(
            *context_work("bf16", c["heads"], c["kv_heads"], 128, 0, c["batch"], c["tokens"] * 1.0)
        ),
        shape,
        heads=[16, 32, 64],
        kv_heads=[2, 4, 8],
        batch=[1, 2, 4, 8, 16],
        tokens=[16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192],
    )


@pytest.mark.parametrize("make", [products, decodes, prompts])
def test_smooth_kernels_are_predicted(make):
    errors = fit_and_check(make()).errors["all"]
    assert errors.median < 0.02
    assert errors.p90 < 0.06
    assert abs(errors.bias) < 0.02


@pytest.mark.parametrize("make", [products, decodes, prompts])
def test_measured_points_are_met(make):
    samples = make()
    fit = FITS[samples.kind]
    logs = np.log(fit.predict(fit.fit(samples), samples) / samples.latency_s)
    assert np.median(np.abs(logs)) < 0.01
    assert np.quantile(np.abs(logs), 0.95) < 0.05


def test_kernels_with_a_window_do_not_pass_for_fast_memory():
    """They read no more than their window, however long the context is that a table names."""
    full, windowed = decodes(), decodes(window=128)
    assert windowed.latency_s.max() < full.latency_s.max() / 10
    columns = {name: np.concatenate([full.columns[name], windowed.columns[name]]) for name in full.columns}
    latency_s = np.concatenate([full.latency_s, windowed.latency_s])
    both = SampleTable(full.kind, "h100-sxm", "vllm", "1", columns, latency_s, "x", np.arange(1, len(latency_s) + 1))
    fit = FITS[both.kind]
    fitted = fit.fit(both)
    assert fitted.rates["bf16"].bytes_per_s < 1.2 * RATES.bytes_per_s
    assert np.quantile(np.abs(np.log(fit.predict(fitted, both) / latency_s)), 0.95) < 0.1


def test_every_fifth_point_is_held_out_and_never_a_whole_line():
    samples = products()
    held = held_out(samples)
    assert held.mean() == pytest.approx(0.2, abs=0.01)
    for name in ("tokens", "n", "k"):
        for value in np.unique(samples.columns[name]):
            assert held[samples.columns[name] == value].mean() < 0.3


def test_a_noisy_kernel_has_honest_errors():
    samples = products()
    noise = np.random.default_rng(1).normal(0, 0.1, len(samples))
    noisy = SampleTable(
        samples.kind, "h100-sxm", "vllm", "1", samples.columns, samples.latency_s * np.exp(noise), "x", samples.lines
    )
    assert 0.05 < fit_and_check(noisy).errors["all"].median < 0.15


def test_shares_within_count_either_side():
    errors = quantiles(np.log([1.029, 0.971, 1.05, 1.2, 0.8]))
    assert (errors.within_3_percent, errors.within_10_percent) == (0.4, 0.6)


def test_products_are_followed_as_closely_as_their_table_agrees_with_itself():
    samples, fit = products(), FITS["gemm"]
    noise = np.random.default_rng(1).normal(0, 0.1, len(samples))
    noisy = replace(samples, latency_s=samples.latency_s * np.exp(noise))
    off = np.log(fit.predict(fit.fit(noisy), noisy) / noisy.latency_s)
    towards = np.log(fit.predict(fit.fit(noisy), noisy) / samples.latency_s)
    assert np.median(np.abs(off)) > 0.03  # a clean table is met within 1%
    assert np.median(np.abs(towards)) < 0.8 * np.median(np.abs(noise))


def test_classes_of_token_counts_are_told_apart():
    samples = products()
    more = {name: values.copy() for name, values in samples.columns.items()}
    more["tokens"] = more["tokens"] + 1
    columns = {name: np.concatenate([samples.columns[name], more[name]]) for name in more}
    latency_s = np.concatenate([samples.latency_s, 1.5 * samples.latency_s])
    both = SampleTable("gemm", "h100-sxm", "vllm", "1", columns, latency_s, "x", np.arange(1, len(latency_s) + 1))
    multiples = {row[1] for row in FITS["gemm"].fit(both).table.rows}
    assert multiples == {1, 4}
    assert {row[1] for row in FITS["gemm"].fit(samples).table.rows} == {1}


@pytest.mark.parametrize(
    ("factors", "expected"), [([3.0], 3.0), ([9.0, 4.0], 4.0), ([9.0, 1.0, 4.0], 2.0), ([9.0, 8.0, 1.0, 4.0], 2.0)]
)
def test_of_repeats_of_a_point_the_faster_half_counts(factors, expected):
    samples = products()
    points = undisturbed(joined(replace(samples, latency_s=factor * samples.latency_s) for factor in factors))
    assert points.columns["tokens"].tolist() == samples.columns["tokens"].tolist()
    assert points.latency_s == pytest.approx(expected * samples.latency_s)
