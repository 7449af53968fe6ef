"""Bytes of a matrix in every format, by hand."""

import pytest

from simcore.cost.assumptions import RooflineEfficiency
from simcore.cost.roofline import Roofline
from simcore.errors import UnknownNameError
from simcore.hardware import load_accelerator
from simcore.models import load_model
from simcore.models.weight_formats import WEIGHT_FORMATS, weight_format
from simcore.models.weights import weight_bytes

ROWS, COLUMNS = 256, 512
NUMBERS = ROWS * COLUMNS


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bf16", 2 * NUMBERS),
        ("fp16", 2 * NUMBERS),
        ("fp32", 4 * NUMBERS),
        ("fp8", NUMBERS + 4),
        ("fp8-channel", NUMBERS + 4 * ROWS),
        ("fp8-block", NUMBERS + 4 * (2 * 4)),
        ("int8", NUMBERS + 4 * ROWS),
        ("int4", NUMBERS // 2 + ROWS * 4 * 20 // 8),
        ("nvfp4", NUMBERS // 2 + ROWS * 32),
        ("mxfp4", NUMBERS * 17 // 32),
    ],
)
def test_bytes_of_a_matrix(name, expected):
    assert weight_format(name).matrix_bytes(ROWS, COLUMNS) == expected
    assert weight_format(name).bytes_per_weight(ROWS, COLUMNS) == expected / NUMBERS


def test_groups_cut_short_have_scales_of_their_own():
    assert weight_format("fp8-block").matrix_bytes(129, 129) == 129 * 129 + 4 * 4
    assert weight_format("int4").matrix_bytes(1, 129) == -(-(129 * 4 + 2 * 20) // 8)


def test_an_unknown_format_is_refused():
    with pytest.raises(UnknownNameError, match=r"weight dtype is 'fp8-blok', .* Did you mean 'fp8-block'\?"):
        weight_format("fp8-blok")


@pytest.mark.parametrize(
    ("accelerator", "rates"),
    [
        ("a100-sxm-80gb", {"fp8": "bf16", "int8": "int8", "int4": "bf16", "nvfp4": "bf16"}),
        ("h100-sxm", {"fp8-channel": "fp8", "int8": "int8", "int4": "bf16", "nvfp4": "bf16"}),
        ("b200", {"fp8-block": "fp8", "nvfp4": "fp4", "int4": "bf16"}),
    ],
)
def test_products_run_in_the_numbers_that_the_chip_has(accelerator, rates):
    chip = load_accelerator(accelerator)
    for name, dtype in rates.items():
        assert Roofline.of(chip, RooflineEfficiency(), name).matmul_flops_per_s == chip.peak_flops_per_s[dtype]


def test_formats_differ_in_what_a_model_takes():
    spec = load_model("llama-3.1-8b")
    by_size = sorted((name for name in WEIGHT_FORMATS if name != "mxfp4"), key=lambda name: weight_bytes(spec, name))
    assert by_size[0] == "int4"
    assert by_size[-1] == "fp32"
    # AWQ checkpoints of this model take 5.73 GB (recalled from the hub), head and embedding in 16 bits.
    assert weight_bytes(spec, "int4") == pytest.approx(5.73e9, rel=0.01)
