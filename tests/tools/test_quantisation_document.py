"""``docs/results/quantisation.md`` shows what its script computes, of formats that are those of the kernels."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

from kernels.quantise_rows import quantised
from tools.quantisation_formats import E2M1, E4M3, fp8, integer, integer_with_zero_point, mxfp4, nvfp4, smoothing
from tools.quantisation_quality import error

ROOT = Path(__file__).resolve().parents[2]


def test_the_document_is_what_the_script_makes():
    script = runpy.run_path(str(ROOT / "tools" / "quantisation_quality.py"))
    text = script["document"]()
    assert (ROOT / "docs" / "results" / "quantisation.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(("dtype", "read"), [(torch.int8, integer), (torch.float8_e4m3fn, fp8)])
def test_formats_of_eight_bits_are_those_of_the_kernels(dtype, read):
    x = np.random.default_rng().standard_t(3, (64, 96)).astype(np.float32).astype(np.float64)
    codes, scales = quantised(torch.from_numpy(x), dtype)
    out = read(x, 8, 1, 96) if read is integer else read(x, 1, 96)
    assert error((codes.double() * scales.double()[:, None]).numpy(), out) < 1e-3


def test_every_number_of_a_small_float_is_its_own_nearest():
    every = torch.arange(256).to(torch.uint8).view(torch.float8_e4m3fn).double().numpy()
    every = every[np.isfinite(every)]
    assert np.array_equal(E4M3.nearest(every), every)
    assert np.unique(E2M1.nearest(np.linspace(-9, 9, 3001))).tolist() == [
        -6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6
    ]  # fmt: skip


def test_grids_of_four_bits():
    x = np.random.default_rng().standard_normal((8, 64))
    assert len(np.unique(integer(x[:1], 4, 1, 64))) <= 15
    assert len(np.unique(integer_with_zero_point(x[:1], 4, 1, 64))) <= 16
    shifted = np.linspace(0, 15, 16)[None, :]
    assert np.allclose(integer_with_zero_point(shifted, 4, 1, 16), shifted)
    powers = 2.0 ** np.arange(-2, 2)
    for read in (mxfp4, nvfp4):
        grid = np.tile(np.array([0.5, 1, 1.5, 2, 3, 4, 6, -6]), 4)[None, :] * powers[:, None]
        assert error(grid, read(grid)) < (1e-12 if read is mxfp4 else 0.05)


def test_smoothing_leaves_the_product_and_evens_out_the_channels():
    generator = np.random.default_rng()
    x, weights = generator.standard_normal((20, 32)) * np.logspace(0, 2, 32), generator.standard_normal((10, 32))
    smooth = smoothing(x, weights, 0.5)
    assert np.allclose((x / smooth) @ (weights * smooth).T, x @ weights.T)
    assert np.allclose(np.abs(x / smooth).max(axis=0), np.abs(weights * smooth).max(axis=0))


def test_what_the_text_says_is_what_the_tables_say():
    def rows(table: str) -> dict[str, list[float]]:
        cells = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
        return {name: [float(value.removesuffix("%")) for value in values] for name, *values in cells}

    document = (ROOT / "docs" / "results" / "quantisation.md").read_text(encoding="utf-8")
    outputs, inputs, weights, kv = (rows(table) for table in re.findall(r"(?:^\|.*\n)+", document, flags=re.MULTILINE))
    fp8_rows = [name for name in outputs if name.startswith("fp8")]
    assert all(2.9 <= value <= 3.9 for name in fp8_rows for value in outputs[name])
    int8, fine_fp8 = "int8, per token and output channel", "fp8, per token and output channel"
    gaussian, outliers, smoothed = (outputs[int8][column] for column in (0, 4, 5))
    assert gaussian < outputs[fine_fp8][0] / 2
    assert inputs[int8][5] > 3 * inputs[fine_fp8][5]
    assert smoothed < outliers / 2
    assert inputs[int8][6] < inputs[int8][5] / 4

    of = {name: values[1] for name, values in weights.items()}
    assert (
        of["int4, per output channel"] - of["int4, groups of 128"]
        >= of["int4, groups of 128"] - of["int4, groups of 32"]
    )
    assert of["int4, zero points, groups of 128"] <= of["int4, groups of 64"]
    assert weights["int4, zero points, groups of 128"][0] < weights["int4, groups of 64"][0]
    assert abs(of["mxfp4 (groups of 32)"] - of["int4, groups of 64"]) <= 1
    assert abs(of["nvfp4 (groups of 16)"] - of["int4, groups of 32"]) <= 1

    shared, floats = kv["int8, per token and head"], kv["fp8, per token and head"]
    assert shared[0] < floats[0]
    assert shared[3] > 2 * floats[3]
    assert kv["int4, per token and head"][3] > 50
    assert kv["int4, zero points, per channel"][3] < kv["int4, per token and head"][3] / 4
