"""Gated delta rule layers: prices between and beyond what was measured, and those that ship."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.cost.calibrated import ErrorQuantiles, Source, available_profiles, load_profile
from simcore.cost.calibrated.linear_attention import LINEAR_ATTENTION_KEYS, LinearAttentionTable
from simcore.cost.calibrated.table import KernelTable
from simcore.hardware import accelerator_names

ERRORS = ErrorQuantiles(1, 0.1, 0.2, 0.0, (0.0,) * 7)
SHAPE = (2, 8, 128, 128)
NONE = np.nan
TABLE = LinearAttentionTable(
    KernelTable(
        LINEAR_ATTENTION_KEYS,
        [
            ("context", *SHAPE, 4),
            ("context", *SHAPE, 1),
            ("generation", *SHAPE, 1),
            ("generation", *SHAPE, 8),
            ("context", 4, 8, 128, 128, 1),
        ],
        np.array([1.0, 64.0, 1024.0, 4096.0]),
        1e-6
        * np.array(
            [
                [12, 30, 90, NONE],
                [10, 20, 40, 120],
                [5, NONE, NONE, NONE],
                [12, NONE, NONE, NONE],
                [10, 20, 40, 120],
            ]
        ),
    ),
    ERRORS,
)
PRICE = TABLE.price(*SHAPE)
MEASURED = [(name, found) for name in accelerator_names() for found in available_profiles(name, ["linear_attention"])]
PROFILES = {pair: load_profile(*pair) for pair in MEASURED}
H200 = PROFILES["h200-sxm", "sglang-0.5.14"]


def test_measured_launches_cost_what_was_measured():
    assert PRICE.chunks_seconds(1, 1024) == pytest.approx(40e-6)
    assert PRICE.chunks_seconds(4, 4 * 64) == pytest.approx(30e-6)
    assert PRICE.decodes_seconds(8) == pytest.approx(12e-6)
    assert (PRICE.launch_seconds([]), PRICE.decodes_seconds(0)) == (0.0, 0.0)
    assert (PRICE.source, PRICE.errors) == (Source.CALIBRATED, ERRORS)


def test_between_batches_latency_is_a_power_of_the_batch():
    assert PRICE.chunks_seconds(2, 2 * 1024) == pytest.approx(60e-6)  # the root of 40 x 90
    assert PRICE.decodes_seconds(4) == pytest.approx(8e-6)


def test_beyond_what_was_measured_latency_grows_in_proportion():
    assert PRICE.chunks_seconds(1, 3 * 4096) == pytest.approx(3 * 120e-6)
    assert PRICE.chunks_seconds(12, 12 * 1024) == pytest.approx(3 * 90e-6)
    assert PRICE.decodes_seconds(24) == pytest.approx(3 * 12e-6)


def test_measured_batches_and_lengths_are_inside():
    inside = [(1, 1), (1, 4096), (4, 4096), (2, 4096)]
    assert all(PRICE.inside_chunks(*launch) for launch in inside)
    outside = [(1, 4097), (4, 4097), (2, 4097), (5, 500), (4, 3)]
    assert not any(PRICE.inside_chunks(*launch) for launch in outside)
    assert [PRICE.inside_decodes(count) for count in (0, 1, 8, 9)] == [False, True, True, False]


def test_unlike_prompts_take_what_as_many_of_the_longest_would_or_as_many_alike():
    assert PRICE.launch_seconds([1024] * 2) == PRICE.chunks_seconds(2, 2048)
    assert PRICE.launch_seconds([1024, 512, 512]) == PRICE.chunks_seconds(2, 2048)
    assert PRICE.launch_seconds([3000, 1]) == pytest.approx(PRICE.launch_seconds([3000]), rel=1e-3)
    many = [1] * 30 + [2]
    assert PRICE.launch_seconds(many) == PRICE.chunks_seconds(31, 32) > PRICE.chunks_seconds(16, 32)
    assert PRICE.inside_launch([1024, 512, 512])
    assert not PRICE.inside_launch([4097, 1])


def test_more_prompts_take_no_less_where_noise_at_the_last_length_says_so():
    """The larger batch would take 4 x 25 us at 4096 tokens, in proportion to what was measured at 1024."""
    rows = [("context", *SHAPE, 1), ("context", *SHAPE, 2), ("generation", *SHAPE, 1)]
    latency_s = 1e-6 * np.array([[9.0, 20.0, 120.0], [9.0, 25.0, NONE], [5.0, NONE, NONE]])
    keys = (LINEAR_ATTENTION_KEYS, rows, np.array([1.0, 1024.0, 4096.0]), latency_s)
    price = LinearAttentionTable(KernelTable(*keys), ERRORS).price(*SHAPE)
    assert price.chunks_seconds(2, 2 * 1024) == pytest.approx(25e-6)
    assert [price.chunks_seconds(1, 4096), price.chunks_seconds(2, 2 * 4096)] == pytest.approx([120e-6] * 2)
    assert price.chunks_seconds(2, 4 * 4096) == pytest.approx(240e-6)
    assert price.inside_chunks(1, 4096)
    assert not price.inside_chunks(2, 2 * 4096)


def test_decodes_of_another_number_of_tokens_are_none():
    rows = [("context", *SHAPE, 1), ("generation", *SHAPE, 1)]
    latency_s = 1e-6 * np.array([[20.0, 120.0], [NONE, 9.0]])
    table = KernelTable(LINEAR_ATTENTION_KEYS, rows, np.array([1.0, 64.0]), latency_s)
    assert LinearAttentionTable(table, ERRORS).price(*SHAPE) is None


def test_heads_that_were_not_measured_in_both_phases_have_no_price():
    assert TABLE.price(4, 8, 128, 128) is None
    assert TABLE.price(2, 8, 128, 256) is None
    assert load_profile("rtx-4090", "vllm-0.19.0").linear_attention(*SHAPE) is None


@given(st.integers(1, 20), st.integers(1, 20_000), st.floats(0.1, 10), st.floats(0.1, 10))
def test_scaled_prices_take_so_many_times_as_long(prompts, tokens, context, generation):
    scaled = PRICE.scaled(context, generation)
    assert scaled.chunks_seconds(prompts, tokens) == pytest.approx(context * PRICE.chunks_seconds(prompts, tokens))
    assert scaled.decodes_seconds(prompts) == pytest.approx(generation * PRICE.decodes_seconds(prompts))
    assert scaled.inside_chunks(prompts, tokens) == PRICE.inside_chunks(prompts, tokens)


def test_the_profiles_that_ship_linear_attention():
    engines = ("sglang-0.5.14", "trtllm-1.3.0rc20", "vllm-0.24.0")
    assert [
        *(("b200", name) for name in engines),
        *(("h100-sxm", name) for name in engines),
        *(("h200-sxm", name) for name in engines),
        ("l40s", "vllm-0.24.0"),
        ("rtx-pro-6000-blackwell", "vllm-0.24.0"),
    ] == MEASURED


def test_shipped_prices_are_those_measured():
    """As aiconfigurator-core 0.12.0 states them for SGLang 0.5.14 on the H200: convolution and delta rule."""
    price = H200.linear_attention(*SHAPE)
    assert price.chunks_seconds(1, 1024) == pytest.approx((4.7 + 59.6) * 1e-6, rel=0.02)
    assert price.decodes_seconds(64) == pytest.approx((2.15 + 16.30) * 1e-6, rel=0.02)
    assert H200.linear_attention(3, 8, 128, 128) is None


@pytest.mark.parametrize(("accelerator", "name"), MEASURED)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_shipped_prices_never_fall_and_lie_between_those_of_measured_batches(accelerator, name, data):
    price = PROFILES[accelerator, name].linear_attention(16, data.draw(st.sampled_from([16, 32, 48, 64])), 128, 128)
    prompts = data.draw(st.integers(1, 100))
    tokens = sorted(data.draw(st.lists(st.integers(1, 65_536), min_size=2, max_size=6)))
    seconds = np.array([price.chunks_seconds(prompts, count) for count in tokens])
    assert np.all(seconds > 0)
    assert np.all(np.diff(seconds) >= -1e-12 * seconds[1:])
    each = data.draw(st.integers(1, 2048))
    low_s, middle_s, high_s = (price.chunks_seconds(count, count * each) for count in (4, 6, 8))
    assert low_s * (1 - 1e-12) <= middle_s <= high_s * (1 + 1e-12)
    by_batch = [price.chunks_seconds(count, count * each) for count in range(1, prompts + 1)]
    assert np.all(np.diff(by_batch) >= -1e-12 * by_batch[-1])
    chunks = data.draw(st.lists(st.integers(1, 16_384), min_size=1, max_size=6))
    assert price.launch_seconds(chunks) >= (1 - 1e-12) * price.launch_seconds([max(chunks)])
    decodes = [price.decodes_seconds(count) for count in range(1, 2 * prompts + 1)]
    assert decodes == sorted(decodes)
