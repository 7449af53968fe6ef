"""KV cache groups: layers that hold the same tokens share block tables, and all groups share one pool of blocks.

This is how vLLM's hybrid KV cache manager lays out models in which some layers slide (its design document "Hybrid KV
Cache Manager", and ``vllm/v1/core/kv_cache_utils.py`` and ``single_type_kv_cache_manager.py`` as of 0.19).
"""

from dataclasses import dataclass

from simcore.core.errors import CapacityError
from simcore.memory.kv_bytes import KvFormat, own_caches
from simcore.models.spec import CachedAttention, ModelSpec

_ALIKE = 1.5
"""Kinds of layers whose counts differ by less than this factor make one group each, the smaller padded."""


@dataclass(frozen=True, slots=True)
class KvCacheGroup:
    """Layers that share the block tables of every request.

    ``layers`` are positions in the model, from 0, of those that keep a cache of their own; ``window_tokens`` is their
    sliding window, None where they attend to everything. A block of the group holds ``block_size_tokens`` tokens.
    """

    layers: tuple[int, ...]
    window_tokens: int | None
    block_size_tokens: int

    @property
    def kind(self) -> str:
        """What the layers attend to: "full" or "sliding"."""
        return "full" if self.window_tokens is None else "sliding"

    def released_blocks(self, computed_tokens: int) -> int:
        """Blocks at the beginning of a request that no later token needs once ``computed_tokens`` are computed.

        The next token sees itself and ``window_tokens`` - 1 before it; a block goes when all of it is out of sight.
        """
        if self.window_tokens is None:
            return 0
        return max(0, computed_tokens - self.window_tokens + 1) // self.block_size_tokens

    def blocks_held(self, tokens: int, computed_tokens: int | None = None) -> int:
        """Blocks of a request with room for ``tokens`` tokens, of which ``computed_tokens`` were computed before.

        By default all but the last: a request that decodes, or has just finished.
        """
        computed = tokens - 1 if computed_tokens is None else computed_tokens
        return -(-tokens // self.block_size_tokens) - self.released_blocks(max(computed, 0))


@dataclass(frozen=True, slots=True)
class KvCacheLayout:
    """The groups of a model and the bytes of a block on each pipeline stage.

    A block id stands for one group's block: ``block_bytes`` are what a rank of each stage sets aside for it, enough for
    the group with most layers there.
    """

    groups: tuple[KvCacheGroup, ...]
    block_bytes: tuple[int, ...]

    @property
    def releases(self) -> bool:
        """Whether any group gives back blocks that its window has left."""
        return any(group.window_tokens is not None for group in self.groups)

    def blocks_held(self, tokens: int, computed_tokens: int | None = None) -> int:
        """Blocks of a request in all groups together (see ``KvCacheGroup.blocks_held``)."""
        return sum(group.blocks_held(tokens, computed_tokens) for group in self.groups)

    def most_blocks_held(self, tokens: int, max_chunk_tokens: int) -> int:
        """Most blocks that a request of ``tokens`` ever holds, prefilled in chunks of up to ``max_chunk_tokens``.

        Of a sliding group that is a window, a chunk, and one block more, as both may begin amid a block.
        """
        most = 0
        for group in self.groups:
            needed = -(-tokens // group.block_size_tokens)
            if group.window_tokens is not None:
                in_sight = min(group.window_tokens - 1 + max_chunk_tokens, tokens)
                needed = min(needed, -(-in_sight // group.block_size_tokens) + 1)
            most += needed
        return most


def pipeline_stages(layers: int, stages: int) -> tuple[range, ...]:
    """Which layers each of ``stages`` pipeline stages holds, as vLLM splits them.

    Evenly; what is left over goes to the stages before the last, from the back (``get_pp_indices`` in vLLM). Raises
    ``CapacityError`` if there are fewer layers than stages.
    """
    if layers < stages:
        raise CapacityError(f"{layers} layers cannot fill {stages} pipeline stages, expected at least as many.")
    each, left = divmod(layers, stages)
    counts = [each + (stages - 1 - left <= stage < stages - 1) for stage in range(stages)]
    starts = [sum(counts[:stage]) for stage in range(stages)]
    return tuple(range(start, start + count) for start, count in zip(starts, counts, strict=True))


def kv_cache_layout(
    spec: ModelSpec,
    kv_format: KvFormat,
    block_size_tokens: int,
    ranks: int = 1,
    stages: int = 1,
    sharing_layers: int = 1,
    hybrid: bool = True,
) -> KvCacheLayout:
    """The KV cache groups of a model on ``ranks`` tensor-parallel ranks and ``stages`` pipeline stages.

    Layers of one kind make one group. Where there are several kinds, each is cut into groups of as many layers as the
    rarest kind has, dealt out in turn so that every pipeline stage has its share of each. Without ``hybrid`` no layer
    releases anything and there is one group. Of ``sharing_layers`` layers alike in succession only the first has a
    cache. Raises ``CapacityError`` where the blocks of two kinds cannot be made of one size.
    """
    caches = [
        (index, attention)
        for attention, layers in _alike(spec).items()
        for index in layers[::sharing_layers][: own_caches(len(layers), sharing_layers)]
    ]
    page_bytes = {index: kv_format.layer_bytes(attention, block_size_tokens, ranks) for index, attention in caches}
    windows = {index: attention.window_tokens if hybrid else None for index, attention in caches}
    if len(set(windows.values())) == 1:
        groups = [KvCacheGroup(tuple(sorted(windows)), next(iter(windows.values())), block_size_tokens)]
    else:
        groups, page_bytes = _hybrid_groups(spec, windows, page_bytes, block_size_tokens)
    stage_layers = pipeline_stages(spec.layers, stages)
    block_bytes = tuple(
        max(sum(page_bytes[index] for index in group.layers if index in layers) for group in groups)
        for layers in stage_layers
    )
    return KvCacheLayout(tuple(groups), block_bytes)


def _alike(spec: ModelSpec) -> dict[CachedAttention, list[int]]:
    """The layers of each kind of attention with a KV cache, by position in the model."""
    layers: dict[CachedAttention, list[int]] = {}
    for index in range(spec.layers):
        (group,) = spec.of_layers(range(index, index + 1))
        if isinstance(group.attention, CachedAttention):
            layers.setdefault(group.attention, []).append(index)
    return layers


def _hybrid_groups(
    spec: ModelSpec, windows: dict[int, int | None], page_bytes: dict[int, int], block_size_tokens: int
) -> tuple[list[KvCacheGroup], dict[int, int]]:
    largest = max(page_bytes.values())
    kinds: dict[tuple[int | None, int], list[int]] = {}
    for index in sorted(windows):
        if largest % page_bytes[index]:
            raise CapacityError(
                f"{spec.name} has layers whose KV blocks take {page_bytes[index]:,} and {largest:,} bytes, expected "
                "sizes of which the largest is a multiple, since all share one pool."
            )
        kinds.setdefault((windows[index], largest // page_bytes[index]), []).append(index)
    fewest, most = min(map(len, kinds.values())), max(map(len, kinds.values()))
    size = most if most < _ALIKE * fewest else fewest
    groups = []
    for (window, times), layers in kinds.items():
        count = -(-len(layers) // size)
        groups += [
            KvCacheGroup(tuple(layers[start::count]), window, block_size_tokens * times) for start in range(count)
        ]
    return groups, dict.fromkeys(page_bytes, largest)
