import math
from dataclasses import dataclass

import pytest
import torch

from kernels.errors import UnsupportedFormError
from kernels.paged_decode import paged_decode, paged_decode_reference
from tests.kernels.closeness import FLOAT_TYPES, assert_close

NAN = float("nan")
HALF = torch.float16
FP8 = torch.float8_e4m3fn


@dataclass
class Inputs:
    """Random queries and a cache whose blocks are in random order and whose unused slots are poison."""

    q: torch.Tensor
    key_cache: torch.Tensor
    value_cache: torch.Tensor
    block_tables: torch.Tensor
    context_lengths: torch.Tensor
    key_scales: torch.Tensor | None
    value_scales: torch.Tensor | None
    sinks: torch.Tensor

    def check(self, sinks: bool = False, **options: object) -> None:
        arguments = (self.key_cache, self.value_cache, self.block_tables, self.context_lengths)
        options |= {"key_scales": self.key_scales, "value_scales": self.value_scales}
        options |= {"sinks": self.sinks if sinks else None}
        options = {"max_context_tokens": int(self.context_lengths.max()), **options}
        scale = 1 / math.sqrt(self.q.shape[-1])
        out = paged_decode(self.q, *arguments, scale, **options)
        assert out.dtype == self.q.dtype
        assert_close(out, paged_decode_reference(self.q.double(), *arguments, scale, **options))


def make(
    device: torch.device,
    lengths: list[int],
    *,
    heads: int = 4,
    kv_heads: int = 2,
    head_dim: int = 64,
    block_size: int = 16,
    dtype: torch.dtype = HALF,
    cache_dtype: torch.dtype | None = None,
    value_size: float = 1.0,
) -> Inputs:
    cache_dtype = cache_dtype or dtype
    counts = [math.ceil(length / block_size) for length in lengths]
    num_blocks = sum(counts) + 1
    order = torch.randperm(num_blocks).to(torch.int32)
    tables = torch.full((len(lengths), max(counts)), 2**31 - 1, dtype=torch.int32)  # entries not to be followed
    used = torch.zeros(num_blocks, block_size, dtype=torch.bool)
    given = 0
    for request, (length, count) in enumerate(zip(lengths, counts, strict=True)):
        tables[request, :count] = order[given : given + count]
        used[order[given : given + count]] = (torch.arange(count * block_size) < length).reshape(count, block_size)
        given += count
    shape = (num_blocks, kv_heads, block_size, head_dim)
    unused = ~used[:, None, :].expand(shape[:3])

    def cache(size: float) -> tuple[torch.Tensor, torch.Tensor | None]:
        values = size * torch.randn(shape)
        if cache_dtype not in (FP8, torch.int8):
            values = values.to(cache_dtype)
            values[unused] = NAN
            return values.to(device), None
        most = 127 if cache_dtype == torch.int8 else 448
        scales = values.abs().amax(-1) / most
        stored = values / scales[..., None]
        stored = stored.round().to(cache_dtype) if cache_dtype == torch.int8 else stored.to(cache_dtype)
        stored.view(torch.uint8)[unused] = 0x7F  # not-a-number in fp8
        scales[unused] = NAN
        return stored.to(device), scales.to(device)

    keys, key_scales = cache(1.0)
    values, value_scales = cache(value_size)
    q = torch.randn(len(lengths), heads, head_dim).to(dtype)
    sinks = torch.randn(heads, device=device)
    context_lengths = torch.tensor(lengths, dtype=torch.int32, device=device)
    return Inputs(q.to(device), keys, values, tables.to(device), context_lengths, key_scales, value_scales, sinks)


RAGGED = [1, 0, 130, 64, 17, 200]


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("splits", [1, 3, None])
def test_paged_decode_equals_the_reference(device: torch.device, dtype: torch.dtype, splits: int | None) -> None:
    make(device, RAGGED, dtype=dtype).check(splits=splits)


@pytest.mark.parametrize("block_size", [16, 48, 64, 128])
@pytest.mark.parametrize("cache_dtype", [HALF, FP8, torch.int8])
def test_every_cache_type_in_every_kind_of_block(
    device: torch.device, block_size: int, cache_dtype: torch.dtype
) -> None:
    make(device, [129, 5], block_size=block_size, cache_dtype=cache_dtype).check(splits=2)


@pytest.mark.parametrize("head_dim", [64, 96, 128, 256])
def test_every_head_dimension(device: torch.device, head_dim: int) -> None:
    make(device, [70, 16], head_dim=head_dim).check(splits=1)


@pytest.mark.parametrize(("heads", "kv_heads"), [(1, 1), (8, 1), (3, 3), (20, 1), (71, 1)])
def test_every_grouping_of_heads(device: torch.device, heads: int, kv_heads: int) -> None:
    make(device, [40, 9], heads=heads, kv_heads=kv_heads).check(splits=1)


@pytest.mark.parametrize("splits", [1, 2])
@pytest.mark.parametrize("options", [{"window": 1}, {"window": 70}, {"soft_cap": 2.0}, {"sinks": True}])
def test_windows_soft_caps_and_sinks(device: torch.device, options: dict[str, object], splits: int) -> None:
    make(device, [1, 64, 65, 150, 0]).check(splits=splits, **options)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("cache_dtype", [None, FP8, torch.int8])
def test_all_options_at_once(device: torch.device, dtype: torch.dtype, cache_dtype: torch.dtype | None) -> None:
    inputs = make(device, [200, 3], dtype=dtype, cache_dtype=cache_dtype)
    inputs.check(splits=2, window=100, soft_cap=5.0, sinks=True)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("cache_dtype", [FP8, torch.int8])
def test_quantised_caches_of_every_query_type(
    device: torch.device, dtype: torch.dtype, cache_dtype: torch.dtype
) -> None:
    make(device, [90, 33], dtype=dtype, cache_dtype=cache_dtype).check()


@pytest.mark.parametrize("cache_dtype", [FP8, torch.int8])
def test_small_value_scales_do_not_underflow(device: torch.device, cache_dtype: torch.dtype) -> None:
    make(device, [150], cache_dtype=cache_dtype, value_size=1e-2).check()


def test_a_context_of_16k(device: torch.device) -> None:
    make(device, [16384], heads=2, kv_heads=1).check(splits=4)


def test_contexts_longer_than_announced_are_read_to_their_end(device: torch.device) -> None:
    make(device, [200, 70]).check(splits=2, max_context_tokens=64)


def test_caches_may_be_views_of_a_joint_one(device: torch.device) -> None:
    inputs = make(device, [40, 70])
    joint = torch.stack([inputs.key_cache, inputs.value_cache], 1)
    inputs.key_cache, inputs.value_cache = joint[:, 0], joint[:, 1]
    inputs.check()


def test_an_empty_batch(device: torch.device) -> None:
    inputs = make(device, [16])
    out = paged_decode(
        inputs.q[:0],
        inputs.key_cache,
        inputs.value_cache,
        inputs.block_tables[:0],
        inputs.context_lengths[:0],
        1.0,
        max_context_tokens=16,
    )
    assert out.shape == (0, 4, 64)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"head_dim": 80}, "head dimension 80; it has 64, 96"), ({"block_size": 8}, "block size 8; it has 16")],
)
def test_other_forms_are_refused(device: torch.device, change: dict[str, int], words: str) -> None:
    with pytest.raises(UnsupportedFormError, match=words):
        make(device, [5], **change).check()
