"""Latent attention out of whole modules: each of four products is taken off, over all tokens of a launch."""

from dataclasses import replace

import numpy as np
import pytest

from calibrate.fit.held_out import FITS
from calibrate.latent_module import attention_of
from calibrate.samples import SampleTable
from simcore.cost.calibrated.base import Rates, gemm_work

RATES = Rates(5e-6, 6e14, 3e12)
PER_TOKEN_S = 1e-7


def product_s(tokens, n, k):
    return RATES.seconds(*gemm_work("bf16", tokens * 1.0, n, k))


@pytest.fixture(scope="module")
def products():
    tokens, n, k = (
        np.ravel(axis)
        for axis in np.meshgrid(2 ** np.arange(15), [512, 2048, 4096, 8192], [512, 2048, 8192], indexing="ij")
    )
    columns = {"dtype": np.full(len(tokens), "bf16"), "tokens": tokens, "n": n, "k": k}
    lines = np.arange(1, len(tokens) + 1)
    return FITS["gemm"].fit(SampleTable("gemm", "h200-sxm", "vllm", "1", columns, product_s(tokens, n, k), "x", lines))


def modules(heads=16, tokens=(1, 16, 128, 1024, 2048, 8192), batch=1):
    """Prompts, of which attention takes ``PER_TOKEN_S`` a token; products of DeepSeek-V3's published sizes."""
    lengths = np.array(tokens)
    shapes = ((1536 + 512 + 64, 7168), (heads * 192, 1536), (heads * 256, 512), (7168, heads * 128))
    latency_s = sum(product_s(batch * lengths, n, k) for n, k in shapes) + PER_TOKEN_S * batch * lengths
    count = len(lengths)
    columns = {
        "dtype": np.full(count, "bf16"),
        "kv_dtype": np.full(count, "bf16"),
        "heads": np.full(count, heads),
        "batch": np.full(count, batch),
        "tokens": lengths,
    }
    return SampleTable("mla_context_module", "h200-sxm", "vllm", "1", columns, latency_s, "x", np.arange(1, count + 1))


@pytest.mark.parametrize(("heads", "batch"), [(16, 1), (16, 4), (128, 2)])
def test_what_products_leave_is_attention(products, heads, batch):
    found = attention_of(modules(heads, (1024, 2048, 4096), batch), products)
    assert found.kind == "mla_context"
    assert found.columns["heads"].tolist() == [heads] * 3
    assert found.latency_s == pytest.approx(PER_TOKEN_S * batch * found.columns["tokens"], rel=0.02)
    found.checked()


def test_nothing_is_left_of_modules_faster_than_their_products(products):
    fast = modules()
    assert len(attention_of(replace(fast, latency_s=fast.latency_s / 3), products)) == 0
