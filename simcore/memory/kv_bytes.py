"""Bytes of the KV cache: what the tokens of a model leave there, in any attention and number format."""

from dataclasses import dataclass

from simcore.core.errors import InputError, UnknownNameError
from simcore.models.spec import CachedAttention, LatentAttention, ModelSpec, heads_per_rank

KV_DTYPE_BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}
"""Bits of one number of the cache."""
DEFAULT_SCALES = {"int8": "token-head", "int4": "channel-group"}
"""Granularity of scales where none is stated; "tensor" for other dtypes, as vLLM's fp8 cache has it."""
CHANNEL_GROUP = 32
"""Numbers that share a scale where they are grouped (Liu et al., "KIVI", arXiv:2402.02750: 32; recalled)."""
_SCALE_BYTES = {"token": 4, "token-head": 4, "channel-group": 4}
"""A scale per token, or per token and head, is an fp32 (vLLM's ``int8_per_token_head``); a group has a scale and a zero
point of 16 bits each (KIVI quantises asymmetrically)."""
INDEX_SCALE_NUMBERS = 128
"""Numbers of an indexer's key that share a scale of 32 bits; they are in 8 bits whatever the cache is (vLLM,
model_executor/layers/sparse_attn_indexer.py; recalled)."""
SCALES = ("tensor", *_SCALE_BYTES)
UNQUANTISED = ("fp32", "bf16", "fp16")


@dataclass(frozen=True, slots=True)
class KvFormat:
    """The number format of a KV cache: ``dtype``, how finely its scales are told, and how many numbers share one.

    ``scales`` is "tensor" (next to nothing), "token" (one for all heads of a token's keys, one for its values),
    "token-head" (one for each head of them) or "channel-group", as KIVI: a key channel shares a scale with the
    ``group_size`` tokens around, a value with ``group_size`` channels of its token and head. The last tokens that KIVI
    keeps in 16 bits until a group is full (128 of each request) are not counted.
    """

    dtype: str = "bf16"
    scales: str = "tensor"
    group_size: int = CHANNEL_GROUP

    @classmethod
    def of(cls, dtype: str, scales: str = "auto", group_size: int = CHANNEL_GROUP) -> "KvFormat":
        """The format of a cache in ``dtype``, its scales by default as engines have them (see DEFAULT_SCALES).

        Raises ``UnknownNameError`` for an unknown dtype or granularity, ``InputError`` for scales of a dtype that
        needs none.
        """
        if dtype not in KV_DTYPE_BITS:
            raise UnknownNameError("precision.kv_cache", dtype, KV_DTYPE_BITS)
        if scales == "auto":
            scales = DEFAULT_SCALES.get(dtype, "tensor")
        if scales not in SCALES:
            raise UnknownNameError("precision.kv_scales", scales, ("auto", *SCALES))
        if dtype in UNQUANTISED and scales != "tensor":
            raise InputError("precision.kv_scales", scales, f"auto or tensor, since {dtype} is not quantised")
        return cls(dtype, scales, group_size)

    def layer_bytes(self, attention: CachedAttention, tokens: int, ranks: int = 1) -> int:
        """Bytes that ``tokens`` tokens, stored together, take in one layer on one of ``ranks`` tensor-parallel ranks.

        Ranks share the heads; a rank holds at least one. A latent (DeepSeek-V2, arXiv:2405.04434) is held whole by
        each, and counts as one head of values; keys of an indexer come on top.
        """
        if isinstance(attention, LatentAttention):
            key_width, value_width, heads = 0, attention.kv_elements_per_token, 1
        else:
            key_width, value_width = attention.head_dim, attention.value_head_dim
            heads = heads_per_rank(attention.kv_heads, ranks)
        bits = KV_DTYPE_BITS[self.dtype]
        data = tokens * heads * (-(-key_width * bits // 8) - (-value_width * bits // 8))
        return data + self._scale_bytes(tokens, heads, key_width, value_width) + index_key_bytes(attention, tokens)

    def _scale_bytes(self, tokens: int, heads: int, key_width: int, value_width: int) -> int:
        if self.scales == "tensor":
            return 0
        if self.scales == "channel-group":
            key_groups = -(-tokens // self.group_size) * key_width
            value_groups = tokens * -(-value_width // self.group_size)
            scales = heads * (key_groups + value_groups)
        else:
            scales = tokens * (2 if key_width else 1) * (heads if self.scales == "token-head" else 1)
        return scales * _SCALE_BYTES[self.scales]

    def layer_bytes_per_token(self, attention: CachedAttention, ranks: int = 1) -> float:
        """The same for one token of many, scales that tokens share spread over them."""
        together = self.group_size if self.scales == "channel-group" else 1
        return self.layer_bytes(attention, together, ranks) / together


def index_key_bytes(attention: CachedAttention, tokens: int = 1) -> int:
    """Bytes of the keys by which an indexer chooses tokens in one layer, on every rank; 0 without one."""
    if not isinstance(attention, LatentAttention) or not attention.index_heads:
        return 0
    width = attention.index_head_dim
    return tokens * (width + 4 * -(-width // INDEX_SCALE_NUMBERS))


def own_caches(layers: int, sharing_layers: int = 1) -> int:
    """Layers that keep keys and values of their own where each ``sharing_layers`` in succession share one cache.

    Cross-layer attention (Brandon et al., arXiv:2405.12981): the first of each group computes keys and values, the
    others read them.
    """
    return -(-layers // sharing_layers)


def kv_bytes_per_token(
    spec: ModelSpec, kv_format: KvFormat | None = None, ranks: int = 1, sharing_layers: int = 1
) -> int:
    """Bytes that one token adds to the KV cache, all layers together and before any window releases it.

    On one of ``ranks`` tensor-parallel ranks; shared scales are spread over their tokens and the sum is rounded up.
    Layers alike share caches, ``sharing_layers`` each.
    """
    kv_format = kv_format or KvFormat()
    counts = attention_counts(spec)
    layers = ((attention, own_caches(count, sharing_layers)) for attention, count in counts.items())
    total = sum(count * kv_format.layer_bytes_per_token(attention, ranks) for attention, count in layers)
    return -int(-total // 1)


def attention_counts(spec: ModelSpec) -> dict[CachedAttention, int]:
    """How many layers have each kind of attention with a KV cache, in the order in which the model names them."""
    counts: dict[CachedAttention, int] = {}
    for group in spec.layer_groups:
        if isinstance(group.attention, CachedAttention):
            counts[group.attention] = counts.get(group.attention, 0) + group.count
    return counts
