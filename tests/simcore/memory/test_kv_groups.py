"""Groups as vLLM forms them, with the examples of its design document."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.core.errors import CapacityError
from simcore.memory.kv_bytes import KvFormat
from simcore.memory.kv_groups import KvCacheGroup, kv_cache_layout, pipeline_stages
from simcore.models import (
    Attention,
    DenseFeedForward,
    LayerGroup,
    LinearAttention,
    ModelSpec,
    load_model,
    preset_names,
)

FULL = Attention(8, 4, 64, 64)
SLIDING = Attention(8, 4, 64, 64, window_tokens=32)
PAGE = 16 * 2 * 4 * 64 * 2


def spec(*attentions):
    """A model with those layers in that order."""
    kinds = list(dict.fromkeys(attentions))
    groups = tuple(LayerGroup(attentions.count(kind), kind, DenseFeedForward(512)) for kind in kinds)
    order = tuple(kinds.index(attention) for attention in attentions)
    return ModelSpec("toy", "toy", 512, groups, 1000, 4096, False, "bf16", layer_order=order)


def layout(model, **choices):
    return kv_cache_layout(model, KvFormat(), 16, **choices)


def shape(model, **choices):
    return [(group.kind, len(group.layers)) for group in layout(model, **choices).groups]


def test_the_example_of_the_design_document():
    # Ten layers attend to everything, twenty to 32 tokens; a request of 112 tokens takes 7 + 2 + 2 blocks.
    found = layout(spec(*[FULL, SLIDING, SLIDING] * 10))
    assert [(group.kind, len(group.layers)) for group in found.groups] == [
        ("full", 10),
        ("sliding", 10),
        ("sliding", 10),
    ]
    assert found.block_bytes == (10 * PAGE,)
    assert [group.blocks_held(112) for group in found.groups] == [7, 2, 2]
    assert found.blocks_held(112) == 11
    assert found.groups[1].layers == tuple(range(1, 30, 3))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("llama-3.1-8b", [("full", 32)]),
        ("deepseek-v3", [("full", 61)]),
        ("mistral-7b", [("sliding", 32)]),
        ("gpt-oss-20b", [("sliding", 12), ("full", 12)]),
        ("gpt-oss-120b", [("sliding", 18), ("full", 18)]),
        ("gemma-3-27b", [*[("sliding", 9)] * 4, *[("sliding", 8)] * 2, ("full", 10)]),
    ],
)
def test_models_that_are_known(model, expected):
    assert shape(load_model(model)) == expected


def test_a_block_has_room_for_the_group_with_most_layers():
    gemma = layout(load_model("gemma-3-27b"))
    assert gemma.block_bytes == (10 * 16 * 2 * 16 * 128 * 2,)
    assert gemma.blocks_held(16) == 7
    # 64 of 65 tokens are computed, the window is 1024: nothing is released yet.
    assert gemma.blocks_held(65) == 7 * 5


def test_kinds_in_about_equal_number_make_one_group_each():
    assert shape(spec(*[SLIDING] * 12, *[FULL] * 13)) == [("sliding", 12), ("full", 13)]
    assert shape(spec(*[SLIDING] * 10, *[FULL] * 15)) == [("sliding", 10), ("full", 8), ("full", 7)]
    assert layout(spec(*[SLIDING] * 12, *[FULL] * 13)).block_bytes == (13 * PAGE,)


def test_without_hybrid_groups_all_layers_hold_everything():
    plain = layout(load_model("gpt-oss-20b"), hybrid=False)
    assert [(group.kind, len(group.layers)) for group in plain.groups] == [("full", 24)]
    assert not plain.releases
    assert plain.blocks_held(1000) == 63


def test_smaller_pages_hold_more_tokens():
    narrow = Attention(8, 2, 64, 64, window_tokens=32)
    found = layout(spec(FULL, narrow))
    assert [group.block_size_tokens for group in found.groups] == [16, 32]
    assert found.block_bytes == (PAGE,)
    with pytest.raises(CapacityError, match="toy has layers whose KV blocks take 12,288 and 16,384 bytes"):
        layout(spec(FULL, Attention(8, 3, 64, 64, window_tokens=32)))


def test_layers_of_one_kind_need_not_be_of_one_size():
    found = layout(spec(FULL, Attention(8, 3, 64, 64)))
    assert [group.layers for group in found.groups] == [(0, 1)]
    assert found.block_bytes == (PAGE * 7 // 4,)


@pytest.mark.parametrize(
    ("layers", "stages", "expected"),
    [(61, 2, [31, 30]), (61, 4, [15, 15, 16, 15]), (62, 4, [15, 16, 16, 15]), (63, 4, [16, 16, 16, 15]), (8, 1, [8])],
)
def test_pipeline_stages(layers, stages, expected):
    assert [len(stage) for stage in pipeline_stages(layers, stages)] == expected


def test_more_stages_than_layers_are_refused():
    with pytest.raises(CapacityError, match="3 layers cannot fill 4 pipeline stages"):
        pipeline_stages(3, 4)


def test_stages_share_the_groups():
    # One full layer and two sliding ones per stage: the sliding groups are dealt out, one layer to each stage.
    found = layout(spec(FULL, SLIDING, SLIDING, FULL, SLIDING, SLIDING), stages=2)
    assert [group.layers for group in found.groups] == [(0, 3), (1, 4), (2, 5)]
    assert found.block_bytes == (PAGE, PAGE)


def test_a_shared_cache_belongs_to_the_first_layer():
    found = layout(spec(*[FULL, SLIDING] * 4), sharing_layers=2)
    assert [group.layers for group in found.groups] == [(0, 4), (1, 5)]


@given(st.integers(1, 3000), st.integers(1, 2000), st.integers(1, 64), st.data())
def test_released_blocks_are_never_seen_again(tokens, window, block_size, data):
    group = KvCacheGroup((0,), window, block_size)
    computed = data.draw(st.integers(0, tokens - 1))
    released = group.released_blocks(computed)
    first_seen = max(0, computed - window + 1)  # by the token at position ``computed``
    assert released * block_size <= first_seen < (released + 1) * block_size
    assert group.blocks_held(tokens, computed) == -(-tokens // block_size) - released > 0


@given(st.sampled_from(preset_names()), st.integers(1, 20_000), st.integers(1, 9000), st.sampled_from([1, 16, 32]))
def test_a_request_in_chunks_never_holds_more_than_stated(model, tokens, chunk, block_size):
    found = kv_cache_layout(load_model(model), KvFormat(), block_size)
    held = [found.blocks_held(min(done + chunk, tokens), done) for done in range(0, tokens, chunk)]
    assert max(held) <= found.most_blocks_held(tokens, chunk)
    assert found.blocks_held(tokens) <= found.most_blocks_held(tokens, chunk)
    spec = load_model(model)
    with_cache = [
        layer
        for layer in range(spec.layers)
        if not isinstance(spec.of_layers(range(layer, layer + 1))[0].attention, LinearAttention)
    ]
    assert sorted(layer for group in found.groups for layer in group.layers) == with_cache
