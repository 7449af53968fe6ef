from dataclasses import dataclass

import pytest
import torch

from kernels.errors import UnsupportedFormError
from kernels.quantise_rows import LARGEST_CODE
from kernels.rope import rotate_and_write
from kernels.rope_reference import rotate_and_write_reference
from tests.kernels.closeness import FLOAT_TYPES, assert_close
from tests.kernels.exact_casts import FP8_TYPES, exact_casts  # noqa: F401

pytestmark = pytest.mark.usefixtures("exact_casts")
BLOCKS = 5


def angles(positions: int, rotary_dims: int, device: torch.device) -> torch.Tensor:
    turns = torch.arange(positions, device=device)[:, None] * 10000.0 ** -torch.linspace(
        0, 1, rotary_dims // 2, device=device
    )
    return torch.cat([turns.cos(), turns.sin()], dim=1)


@dataclass
class Inputs:
    """Inputs of one call: heads cut out of a joint projection, and caches that hold a known value everywhere."""

    device: torch.device
    dtype: torch.dtype
    cache: torch.dtype
    tokens: int = 7
    heads: int = 6
    kv_heads: int = 3
    head_dim: int = 64
    rotary_dims: int = 64
    block_size: int = 16
    interleaved: bool = False

    def __post_init__(self) -> None:
        heads = self.heads + 2 * self.kv_heads
        projected = torch.randn(self.tokens, heads * self.head_dim, device=self.device).to(self.dtype)
        parts = projected.unflatten(1, (heads, self.head_dim)).split([self.heads, self.kv_heads, self.kv_heads], dim=1)
        self.queries, self.keys, self.values = parts
        self.positions = torch.randint(0, 300, (self.tokens,), device=self.device, dtype=torch.int32)
        self.cos_sin = angles(300, self.rotary_dims, self.device)
        self.slots = torch.randperm(BLOCKS * self.block_size, device=self.device)[: self.tokens]
        self.slots[::3] = -1
        if self.tokens == 1:
            self.slots[:] = 2 * self.block_size - 1

    def caches(self) -> list[torch.Tensor | None]:
        shape = (BLOCKS, self.kv_heads, self.block_size)
        caches = [torch.full((*shape, self.head_dim), 3.0, device=self.device).to(self.cache) for _ in range(2)]
        if self.cache not in LARGEST_CODE:
            return [*caches, None, None]
        return [*caches, *(torch.full(shape, 0.5, device=self.device) for _ in range(2))]

    def call(self, function, double: bool = False):
        caches = self.caches()
        heads = [each.double() if double else each for each in (self.queries, self.keys, self.values)]
        if double and self.cache not in LARGEST_CODE:
            caches[:2] = [cache.double() for cache in caches[:2]]
        out = function(*heads, self.positions, self.cos_sin, self.slots, *caches, self.interleaved)
        return *out, *caches


def check(inputs: Inputs) -> None:
    queries, keys, *caches = inputs.call(rotate_and_write)
    expected_queries, expected_keys, *expected_caches = inputs.call(rotate_and_write_reference, double=True)
    assert_close(queries, expected_queries)
    assert_close(keys, expected_keys)
    for cache, scales, expected, expected_scales in zip(
        caches[:2], caches[2:], expected_caches[:2], expected_caches[2:], strict=True
    ):
        if scales is None:
            assert_close(cache, expected)
        else:
            assert_close(scales, expected_scales, tolerance=1e-6)
            assert_close(
                cache.float() * scales[..., None], expected.float() * expected_scales[..., None], tolerance=2e-3
            )
        untouched = torch.ones(cache.shape[0] * cache.shape[2], dtype=torch.bool, device=cache.device)
        untouched[inputs.slots[inputs.slots >= 0]] = False
        rows = cache.float().transpose(1, 2).flatten(0, 1)
        assert (rows[untouched] == 3.0).all()
        assert (rows[~untouched] != 3.0).any(dim=-1).all()


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(("head_dim", "rotary_dims"), [(64, 64), (128, 128), (96, 96), (96, 32), (80, 20)])
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_equals_the_reference(
    device: torch.device, dtype: torch.dtype, head_dim: int, rotary_dims: int, interleaved: bool
) -> None:
    check(Inputs(device, dtype, dtype, head_dim=head_dim, rotary_dims=rotary_dims, interleaved=interleaved))


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("cache", [torch.int8, *FP8_TYPES])
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_quantised_caches_equal_the_reference(
    device: torch.device, dtype: torch.dtype, cache: torch.dtype, interleaved: bool
) -> None:
    check(Inputs(device, dtype, cache, interleaved=interleaved, head_dim=96, rotary_dims=64))


@pytest.mark.parametrize(
    ("tokens", "heads", "kv_heads", "block_size"), [(1, 1, 1, 16), (1, 32, 8, 128), (33, 40, 1, 32), (4, 17, 17, 64)]
)
@pytest.mark.parametrize("cache", [torch.float16, torch.int8])
def test_shapes(
    device: torch.device, cache: torch.dtype, tokens: int, heads: int, kv_heads: int, block_size: int
) -> None:
    check(Inputs(device, torch.float16, cache, tokens=tokens, heads=heads, kv_heads=kv_heads, block_size=block_size))


def test_no_tokens(device: torch.device) -> None:
    queries, keys, *_ = Inputs(device, torch.float16, torch.float16, tokens=0).call(rotate_and_write)
    assert queries.shape == (0, 6, 64)
    assert keys.shape == (0, 3, 64)


def test_refuses_forms_that_do_not_exist(device: torch.device) -> None:
    inputs = Inputs(device, torch.float16, torch.float16, rotary_dims=64)
    inputs.cos_sin = angles(300, 128, device)
    with pytest.raises(UnsupportedFormError, match="rotary_dims 128; it has even numbers up to 64"):
        inputs.call(rotate_and_write)
    inputs = Inputs(device, torch.float16, torch.float16)
    inputs.cache = torch.int16
    with pytest.raises(UnsupportedFormError, match=r"cache without scales in torch\.int16"):
        inputs.call(rotate_and_write)
