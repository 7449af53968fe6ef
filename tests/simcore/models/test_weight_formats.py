"""Bytes of a matrix in every format, by hand."""

import pytest

from simcore.core.errors import UnknownNameError
from simcore.cost.assumptions import RooflineEfficiency
from simcore.cost.roofline import Roofline
from simcore.hardware import load_accelerator
from simcore.models import load_model
from simcore.models.weight_formats import EXPERTS, WEIGHT_FORMATS, weight_format
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
        ("int4-experts", NUMBERS * 9 // 16),
        ("nvfp4-no-qkv", NUMBERS // 2 + ROWS * 32),
        ("nvfp4-experts", NUMBERS // 2 + ROWS * 32),
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
    with pytest.raises(UnknownNameError, match=r"precision.weights is 'fp8-blok', .* Did you mean 'fp8-block'\?"):
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
    formats = (name for name, stored in WEIGHT_FORMATS.items() if stored.of != EXPERTS)
    by_size = sorted(formats, key=lambda name: weight_bytes(spec, name))
    assert by_size[0] == "int4"
    assert by_size[-1] == "fp32"
    # AWQ checkpoints of this model take 5.73 GB (recalled from the hub), head and embedding in 16 bits.
    assert weight_bytes(spec, "int4") == pytest.approx(5.73e9, rel=0.01)


def test_formats_of_some_matrices_leave_the_others_in_16_bits():
    spec = load_model("deepseek-v3")
    layers, hidden, heads = 61, 7168, 128
    output = layers * hidden * heads * 128
    into = layers * (hidden * 1536 + 1536 * heads * 192 + hidden * 576 + 512 * heads * 256)
    saved_bits = 16 - 4.5
    whole, no_qkv = weight_bytes(spec, "nvfp4"), weight_bytes(spec, "nvfp4-no-qkv")
    assert no_qkv - whole == into * saved_bits / 8
    dense = 3 * 3 * hidden * 18432 + 58 * 3 * hidden * 2048
    assert weight_bytes(spec, "nvfp4-experts") - no_qkv == (output + dense) * saved_bits / 8


def test_kimi_takes_the_bytes_of_its_checkpoints():
    spec = load_model("kimi-k2.5")
    # 591 GB (NVIDIA developer forum on Kimi-K2.5-NVFP4) and 594 GB (model card of Kimi-K2-Thinking, recalled).
    assert weight_bytes(spec, "nvfp4-experts") == pytest.approx(591e9, rel=0.01)
    assert weight_bytes(spec) == pytest.approx(594e9, rel=0.01)
