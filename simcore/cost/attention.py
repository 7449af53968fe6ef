"""Attention of a model on one rank: what a pair of query and context token costs, and a context token read."""

from dataclasses import dataclass

from simcore.engines import ASSUMED_KERNELS, LaunchCounts
from simcore.memory.kv_bytes import KvFormat, attention_counts, index_key_bytes
from simcore.models import CachedAttention, LatentAttention, ModelSpec, heads_per_rank
from simcore.models.weight_formats import ACTIVATION_BYTES


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Heads on one rank, keys and values equally wide, and the dtype of a cache with a scale per tensor at most.

    With ``latent`` the cache holds the latent that all heads share.
    """

    kv_dtype: str
    heads: int
    kv_heads: int
    head_dim: int
    latent: bool = False


@dataclass(frozen=True, slots=True)
class AttentionWork:
    """The attention of ``count`` layers on one rank.

    A query token and a context token cost ``flops_per_pair``; a context token is read with ``kv_bytes_per_token``, a
    query token read and its result written with ``query_bytes_per_token``. ``window_tokens`` is None without a window.
    ``shape`` is what measurements are found by, None for attention that none are of. ``uncompiled_launches`` are added
    to ``launches`` where the engine does not compile its layers. The cache is in ``kv_dtype``.
    """

    count: int
    window_tokens: int | None
    flops_per_pair: float
    decode_flops_per_pair: float
    kv_bytes_per_token: float
    query_bytes_per_token: float
    shape: AttentionShape | None = None
    launches: int = 1
    uncompiled_launches: int = 0
    kv_dtype: str = "bf16"


def attention_work(
    spec: ModelSpec, kv_format: KvFormat, ranks: int, launches: LaunchCounts = ASSUMED_KERNELS.launches
) -> tuple[AttentionWork, ...]:
    """The attention of the whole model on one rank, layers alike put together.

    A layer that shares another's cache reads it all the same.
    """
    counts = attention_counts(spec).items()
    chosen = (_index_work(attention, count) for attention, count in counts if index_key_bytes(attention))
    return (*(_attention_work(attention, count, kv_format, ranks, launches) for attention, count in counts), *chosen)


def _index_work(attention: CachedAttention, count: int) -> AttentionWork:
    """What an indexer does to rank tokens: each of its heads, all of them on every rank, asks every key.

    Its products are in 8 bits and are priced at the rate of 16; choosing among the scores is left out.
    """
    assert isinstance(attention, LatentAttention)
    flops = 2.0 * attention.index_heads * attention.index_head_dim
    return AttentionWork(
        count,
        attention.window_tokens,
        flops_per_pair=flops,
        decode_flops_per_pair=flops,
        kv_bytes_per_token=index_key_bytes(attention),
        query_bytes_per_token=attention.index_heads * attention.index_head_dim * ACTIVATION_BYTES,
        kv_dtype="fp8",
    )


def _attention_work(
    attention: CachedAttention, count: int, kv_format: KvFormat, ranks: int, launches: LaunchCounts
) -> AttentionWork:
    heads = heads_per_rank(attention.query_heads, ranks)
    kv_bytes_per_token = kv_format.layer_bytes_per_token(attention, ranks) - index_key_bytes(attention)
    if isinstance(attention, LatentAttention):
        # Prefill expands the latent to full keys and values; decode works on the latent itself (weight absorption), and
        # so does prefill whose tokens have each chosen others.
        latent = attention.kv_lora_rank + attention.rope_head_dim
        key_dim = attention.nope_head_dim + attention.rope_head_dim
        absorbed = 2.0 * heads * (latent + attention.kv_lora_rank)
        shape = None
        if kv_format.scales == "tensor" and attention.attended_tokens is None:
            shape = AttentionShape(kv_format.dtype, heads, 1, latent, latent=True)
        return AttentionWork(
            count,
            # Of the tokens that an indexer chose as many are read as a window of them would hold.
            attention.attended_tokens or attention.window_tokens,
            flops_per_pair=absorbed
            if attention.attended_tokens
            else 2.0 * heads * (key_dim + attention.value_head_dim),
            decode_flops_per_pair=absorbed,
            kv_bytes_per_token=kv_bytes_per_token,
            query_bytes_per_token=heads * (latent + attention.kv_lora_rank) * ACTIVATION_BYTES,
            shape=shape,
            launches=launches.latent_attention,
            uncompiled_launches=launches.uncompiled_latent_attention,
            kv_dtype=kv_format.dtype,
        )
    dims = attention.head_dim + attention.value_head_dim
    shape = None
    if attention.head_dim == attention.value_head_dim and kv_format.scales == "tensor":
        kv_heads = heads_per_rank(attention.kv_heads, ranks)
        shape = AttentionShape(kv_format.dtype, heads, kv_heads, attention.head_dim)
    return AttentionWork(
        count,
        attention.window_tokens,
        flops_per_pair=2.0 * heads * dims,
        decode_flops_per_pair=2.0 * heads * dims,
        kv_bytes_per_token=kv_bytes_per_token,
        query_bytes_per_token=heads * dims * ACTIVATION_BYTES,
        shape=shape,
        kv_dtype=kv_format.dtype,
    )
