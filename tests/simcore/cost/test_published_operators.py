"""Operators of published models of all families: every weight is read once, and every active parameter multiplied."""

import pytest

from simcore.cost.attention import attention_work
from simcore.cost.linear_attention import linear_attention_work
from simcore.cost.model_operators import all_reduces, head_operators, layer_operators
from simcore.memory.kv_bytes import KvFormat
from simcore.models import count_parameters, input_embedding_parameters, weight_bytes
from tests.simcore.models.published_models import NAMES, published_model


@pytest.mark.parametrize("name", NAMES)
def test_operators_hold_every_weight_of_a_published_model(name):
    """Norms, biases, convolutions and what a state space adds number by number are the tolerance."""
    spec = published_model(name)
    operators = [*layer_operators(spec, "bf16", 1), *head_operators(spec, 1)]
    read = sum(operator.count * operator.experts * operator.weight_bytes for operator in operators)
    assert read == pytest.approx(weight_bytes(spec, "bf16") - 2 * input_embedding_parameters(spec), rel=0.01)
    flops = sum(operator.count * operator.flops(1) for operator in operators)
    multiplied = count_parameters(spec).active - input_embedding_parameters(spec)
    assert flops == pytest.approx(2 * multiplied, rel=0.015)


def test_blocks_side_by_side_are_summed_over_ranks_once():
    (sums, _) = all_reduces(published_model("gpt-neox-20b"))
    assert sums.count == 44
    (sums, _) = all_reduces(published_model("llama-3.2-1b"))
    assert sums.count == 2 * 16


def test_a_layer_of_one_block_is_summed_once():
    (sums, _) = all_reduces(published_model("nemotron-h-8b"))
    assert sums.count == 52


def test_an_indexer_asks_every_key_and_attention_reads_what_it_chose():
    chosen, index = attention_work(published_model("deepseek-v3.2"), KvFormat(), 8)
    assert (chosen.count, chosen.window_tokens, chosen.kv_bytes_per_token) == (61, 2048, 1152)
    assert chosen.flops_per_pair == chosen.decode_flops_per_pair == 2 * 16 * (576 + 512)
    assert (index.count, index.window_tokens, index.kv_bytes_per_token) == (61, None, 132)
    assert index.flops_per_pair == 2 * 64 * 128
    assert chosen.shape is None


def test_layers_that_share_an_indexer_have_none():
    *chosen, index = attention_work(published_model("glm-5.2"), KvFormat(), 8)
    assert sum(work.count for work in chosen) == 78
    assert index.count == 21


def test_a_state_space_is_priced_by_its_state_alone():
    (work,) = linear_attention_work(published_model("nemotron-h-8b"), 1)
    assert (work.count, work.delta_rule) == (24, False)
    assert work.state_bytes == 128 * 64 * 128 * 4 + 3 * (128 * 64 + 2 * 8 * 128) * 2
    assert work.flops_per_token == 5 * 128 * 64 * 128 + 2 * 4 * (128 * 64 + 2 * 8 * 128)
