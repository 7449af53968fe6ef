"""Noise is told from what each axis does by itself."""

import itertools

import numpy as np
import pytest

from calibrate.fit.noise import noise_of
from calibrate.samples import SampleTable


def products(noise, tokens=(1, 2, 4, 8, 16, 32, 64, 128, 256), ns=(64, 128, 256, 512, 1024), ks=(64, 128, 256, 512)):
    grid = np.array(list(itertools.product(tokens, ns, ks)))
    columns = dict(zip(("tokens", "n", "k"), grid.T, strict=True)) | {"dtype": np.full(len(grid), "bf16")}
    jumps = np.where(grid[:, 0] > 16, 1.7, 1.0) * grid[:, 1] ** 0.9 * grid[:, 2]
    latency_s = 1e-9 * jumps * np.exp(np.random.default_rng(2).normal(0, noise, len(grid)))
    return SampleTable("gemm", "h100-sxm", "vllm", "1", columns, latency_s, "made-up", np.arange(1, len(grid) + 1))


def test_a_kernel_that_is_a_product_of_axes_has_none():
    found = noise_of(products(0.0))
    assert found is not None
    assert found.p90 < 1e-9


@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_noise_of_known_deviation_is_found(noise):
    found = noise_of(products(noise))
    assert found is not None
    assert found.median == pytest.approx(0.6745 * noise, rel=0.3)
    assert found.p90 == pytest.approx(1.645 * noise, rel=0.3)


def test_too_few_neighbours_tell_nothing():
    assert noise_of(products(0.1, tokens=(1,), ns=(64,))) is None
