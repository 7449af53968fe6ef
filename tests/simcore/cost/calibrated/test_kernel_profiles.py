"""The profiles that ship: they load, and price as physics demands."""

import itertools
import shutil
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.errors import FileError, InputError, UnknownNameError
from simcore.cost.calibrated import Source, available_profiles, load_profile
from simcore.hardware import accelerator_names

SHIPPED = [(name, found) for name in accelerator_names() for found in available_profiles(name)]
FULL = [pair for pair in SHIPPED if pair[1].startswith("vllm")]
H200 = load_profile("h200-sxm", "vllm-0.19.0")


def test_the_accelerators_that_were_promised_are_calibrated():
    calibrated = {name for name, _ in SHIPPED}
    assert calibrated == {
        "a100-sxm-80gb",
        "b200",
        "h100-sxm",
        "h200-sxm",
        "l40s",
        "rtx-4090",
        "rtx-pro-6000-blackwell",
    }


@pytest.mark.parametrize(("accelerator", "name"), SHIPPED)
def test_profiles_load_with_provenance_and_errors(accelerator, name):
    profile = load_profile(accelerator, name)
    assert profile.accelerator == accelerator
    assert f"{profile.engine}-{profile.version}" == name
    for kind, origin in profile.provenance.items():
        assert origin.source
        assert origin.licence in ("Apache-2.0", "MIT")
        assert origin.samples > 0
        errors = profile.errors[kind]["all"]
        assert errors.points > 0
        assert list(errors.quantiles) == sorted(errors.quantiles)
        assert errors.median <= errors.p90


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["bf16", "fp8", "fp8-block"]),
    st.integers(64, 40_000),
    st.integers(64, 40_000),
    st.lists(st.integers(1, 40_000), min_size=2, max_size=8),
)
def test_products_of_any_shape_grow_with_tokens_of_a_class(dtype, n, k, tokens):
    price = H200.gemm(dtype, n, k)
    for remainder in range(2):
        counts = sorted(4 * count + remainder for count in tokens)
        seconds = [price.seconds(count) for count in counts]
        assert seconds == sorted(seconds)
        assert seconds[0] > 0


def test_a_product_between_measured_shapes_is_inside_and_near_both():
    price = H200.gemm("bf16", 28672, 4096)
    assert price.source is Source.CALIBRATED
    assert price.inside(512)
    assert not price.inside(1 << 20)
    low, high = (H200.gemm("bf16", n, 4096).seconds(512) for n in (16384, 51200))
    assert low < price.seconds(512) < high


def test_block_scaled_products_of_uneven_counts_cost_more():
    price = H200.gemm("fp8-block", 4096, 4096)
    assert price.multiple_of == 4
    assert price.seconds(1025) > 1.2 * price.seconds(1024)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 1500), st.lists(st.integers(1, 200_000), min_size=2, max_size=10))
def test_decodes_grow_with_context(batch, contexts):
    price = H200.generation_attention("bf16", 28, 4, 128)
    seconds = [price.seconds(batch, batch * context) for context in sorted(contexts)]
    assert seconds == sorted(seconds)


def test_decode_steps_at_once_equal_single_ones_to_the_bit():
    curve = H200.generation_attention("bf16", 32, 8, 128).over_total_context(48).curve
    totals = 48_000 + 48 * np.arange(2000)
    assert curve.at_many(totals).tolist() == [curve.at(int(total)) for total in totals]


def test_one_prompt_is_priced_as_measured_and_a_batch_as_many():
    price = H200.context_attention("bf16", 32, 8, 128)
    assert price.seconds(4096) == price.curves[0].at(4096)
    assert price.seconds(4096, batch=4) == pytest.approx(price.curves[price.levels.index(4)].at(4096))
    assert price.step_s([]) == 0.0


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8000), st.integers(0, 8000), st.integers(1, 2000))
def test_chunks_over_prefixes_cost_no_less_than_without_and_no_more_than_the_whole(tokens, prefix, more):
    price = H200.context_attention("bf16", 32, 8, 128)
    chunk_s = price.seconds(tokens, prefix)
    assert chunk_s >= price.seconds(tokens) * (1 - 1e-12)
    assert chunk_s <= price.seconds(tokens + prefix) * (1 + 1e-12)
    assert price.step_s([(tokens, prefix), (more, 0)]) > 0


@pytest.mark.parametrize(("accelerator", "name"), SHIPPED)
def test_a_short_chunk_over_a_prefix_beyond_those_measured_costs_at_most_in_proportion_to_it(accelerator, name):
    price = load_profile(accelerator, name).context_attention("bf16", 32, 8, 128)
    if price is None:
        pytest.skip("no attention of this shape was measured")
    longest = int(price.sweep.last)
    once_s, eight_times_s = (price.seconds(64, prefix) for prefix in (longest, 8 * longest))
    assert once_s < eight_times_s < 8.5 * once_s


def test_a_prefix_longer_than_the_window_costs_what_one_of_its_length_does():
    profile = load_profile("h100-sxm", "vllm-0.24.0")
    price = profile.context_attention("bf16", 64, 8, 64, 128)
    for tokens in (1, 64, 1000):
        assert price.seconds(tokens, 120_000) == price.seconds(tokens, 128) >= price.seconds(tokens, 64)
        assert price.inside(tokens, 120_000) == price.inside(tokens, 128)


@pytest.mark.parametrize(("accelerator", "name"), [("h100-sxm", "vllm-0.24.0"), ("rtx-4090", "vllm-0.19.0")])
def test_a_window_that_was_not_measured_is_full_attention_over_as_many_pairs(accelerator, name):
    shape = ("bf16", 32, 8, 128)
    profile = load_profile(accelerator, name)
    full, price = profile.context_attention(*shape), profile.context_attention(*shape, 4096)
    for tokens, prefix in ((1, 0), (512, 0), (4096, 0), (512, 3000), (96, 4000)):
        assert price.seconds(tokens, prefix) == full.seconds(tokens, prefix)
        assert price.inside(tokens, prefix) == full.inside(tokens, prefix)
    lengths = [price.seconds(tokens) for tokens in (2048, 4096, 8192, 16384, 32768)]
    assert lengths == sorted(lengths)
    assert lengths[-1] < 0.5 * full.seconds(32768)
    assert lengths[-1] / lengths[-2] == pytest.approx(2, rel=0.2)
    assert price.seconds(512, 100_000) == pytest.approx(price.seconds(512, 4096))
    assert not price.inside(4097)
    decode, full_decode = profile.generation_attention(*shape, 4096), profile.generation_attention(*shape)
    assert decode.seconds(16, 16 * 2000) == full_decode.seconds(16, 16 * 2000)


def test_full_attention_stands_in_for_measured_windows():
    """Within a window it is the same kernel; beyond, windows waste part of their first and last tiles."""
    profile = load_profile("h100-sxm", "vllm-0.24.0")
    shape = ("bf16", 32, 4, 128)
    own = profile.context_attention(*shape, 128)
    stands_in = replace(profile.context_attention(*shape), window=128, of_full=True)
    for tokens in (64, 128):
        assert stands_in.seconds(tokens) == pytest.approx(own.seconds(tokens), rel=0.05)
    for tokens in (512, 2048, 8192):
        assert stands_in.seconds(tokens) == pytest.approx(own.seconds(tokens), rel=0.2)


def test_measured_prefixes_are_read_as_they_stand():
    price = load_profile("rtx-4090", "vllm-0.19.0").context_attention("bf16", 32, 8, 128)
    assert price.by_prefix
    rising = [price.seconds(512, prefix) for prefix in (0, 512, 2048, 8192)]
    assert rising == sorted(rising)
    assert price.inside(512, 8192)
    assert not price.inside(512, 1 << 20)


def test_decodes_beside_a_chunk_cost_more_than_alone_where_heads_are_not_packed():
    profile = load_profile("rtx-4090", "vllm-0.19.0")
    shape = ("bf16", 32, 8, 128)
    alone, beside = profile.generation_attention(*shape), profile.mixed_generation(*shape)
    assert beside.seconds(64, 64 * 2048) > 1.5 * alone.seconds(64, 64 * 2048)
    assert H200.mixed_generation(*shape) is None


def test_experts_of_measured_and_unknown_models():
    mixtral = (4096, 14336, 2, 8)
    price = H200.moe("bf16", *mixtral)
    assert price.inside(256)
    assert price.seconds(4096) > price.seconds(256) > 0
    unknown = H200.moe("bf16", 4096, 8192, 2, 8)
    assert not unknown.shape_inside
    assert unknown.seconds(4096) < price.seconds(4096)
    assert H200.moe("fp4-of-tomorrow", *mixtral) is None


def test_collectives_by_ranks_and_implementation():
    prices = [H200.collective("all_reduce", "custom_graph", ranks) for ranks in (2, 4, 6, 8)]
    assert all(price.shape_inside for price in prices)
    beyond = H200.collective("all_reduce", "custom_graph", 16)
    assert not beyond.shape_inside
    assert beyond.seconds(1 << 24) >= prices[-1].seconds(1 << 24)
    own, nccl = (H200.collective("all_reduce", how, 8).seconds(8192) for how in ("custom_graph", "nccl"))
    assert own < nccl
    assert H200.collective("all_reduce", "custom_eager", 8) is None  # the time of launching it is the host's
    assert H200.collective("all_reduce", "custom_graph", 1) is None
    assert H200.collective("all_reduce", "nccl", 8, nodes=2) is None


def test_latent_attention():
    profile = load_profile("h200-sxm", "sglang-0.5.14")
    context, generation = profile.mla_context("bf16", 16), profile.mla_generation("bf16", 16)
    assert context.seconds(4096) > context.seconds(1024)
    assert generation.seconds(64, 64 * 4096) > generation.seconds(64, 64 * 1024)


@pytest.mark.parametrize(("accelerator", "name"), FULL)
def test_no_shape_gives_a_price_that_is_not_positive(accelerator, name):
    profile = load_profile(accelerator, name)
    for kv_dtype, head_dim, window in profile._generation["generation_attention"].families:
        for heads, kv_heads, batch in itertools.product((1, 7, 64), (1, 8), (1, 33, 1024)):
            price = profile.generation_attention(kv_dtype, heads, min(kv_heads, heads), head_dim, window)
            assert price.seconds(batch, batch * 1000) > 0


def test_unknown_profiles_are_named():
    with pytest.raises(UnknownNameError, match=r"Did you mean 'vllm-0\.19\.0'"):
        load_profile("h200-sxm", "vllm-0.19")
    assert available_profiles("cpu-generic") == ()


@pytest.fixture
def copied(tmp_path):
    folder = tmp_path / "profile"
    with resources.as_file(resources.files("hardware_profiles") / "rtx-4090" / "vllm-0.19.0") as source:
        shutil.copytree(source, folder)
    return folder


def broken(folder: Path, name: str, old: str, new: str) -> str:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))
    return str(folder)


def test_a_profile_of_ones_own_is_read_from_its_folder(copied):
    assert load_profile("rtx-4090", str(copied)).gemm("bf16", 6144, 4096).source is Source.IMPORTED


def test_broken_profiles_name_file_line_and_field(copied):
    with pytest.raises(FileError, match=r"gemm.csv, line 2: a latency is not a number"):
        load_profile("rtx-4090", broken(copied, "gemm.csv", "\nbf16,1,4096,4096,", "\nbf16,1,4096,4096,x"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\ncontext,1,2,", "\nprefill,1,2,", r"phase is 'prefill', expected one of context, generation"),
        ("\ncontext,1,2,", "\ncontext,one,2,", r"key_heads is 'one', expected a whole number"),
        ("\ncontext,1,2,128,128,2,", "\ncontext,1,2,128,128,1,", r"a second row of the same phase, key_heads, "),
    ],
)
def test_broken_rows_name_line_and_column(tmp_path, old, new, message):
    folder = tmp_path / "profile"
    with resources.as_file(resources.files("hardware_profiles") / "l40s" / "vllm-0.24.0") as source:
        shutil.copytree(source, folder)
    with pytest.raises(FileError, match=rf"linear_attention\.csv, line \d+: {message}"):
        load_profile("l40s", broken(folder, "linear_attention.csv", old, new))


def test_unknown_kernel_kinds_are_refused(copied):
    with pytest.raises(InputError, match="Did you mean 'gemm'"):
        load_profile("rtx-4090", broken(copied, "profile.yaml", "  gemm:", "  gem:"))


def test_missing_files_are_named(copied):
    (copied / "gemm.csv").unlink()
    with pytest.raises(FileError, match=r"gemm\.csv: no such file\."):
        load_profile("rtx-4090", str(copied))
