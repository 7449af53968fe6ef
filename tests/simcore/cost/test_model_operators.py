import pytest

from simcore.cost.attention import attention_work
from simcore.cost.model_operators import (
    all_reduces,
    embedding_operators,
    final_norm_operators,
    head_operators,
    layer_operators,
)
from simcore.cost.operators import AllReduce
from simcore.memory.kv_bytes import KvFormat
from simcore.models import count_parameters, input_embedding_parameters, load_model, preset_names, weight_bytes


def layer_and_head(name, dtype="bf16", ranks=1):
    spec = load_model(name)
    return [*layer_operators(spec, dtype, ranks), *head_operators(spec, ranks)]


def total_weight_bytes(operators):
    return sum(operator.count * operator.experts * operator.weight_bytes for operator in operators)


@pytest.mark.parametrize("name", preset_names())
def test_a_token_costs_two_operations_per_active_parameter(name):
    """All but the input embedding, of which a token reads a row; norms and biases are the tolerance."""
    spec = load_model(name)
    flops = sum(operator.count * operator.flops(1) for operator in layer_and_head(name))
    multiplied = count_parameters(spec).active - input_embedding_parameters(spec)
    assert flops == pytest.approx(2 * multiplied, rel=0.01)


@pytest.mark.parametrize("name", preset_names())
def test_a_large_batch_reads_every_weight_once(name):
    spec = load_model(name)
    dtype = "mxfp4" if spec.dtype == "mxfp4" else "bf16"
    stored = weight_bytes(spec, dtype) - 2 * input_embedding_parameters(spec)
    assert total_weight_bytes(layer_and_head(name, dtype)) == pytest.approx(stored, rel=0.01)
    read = sum(
        operator.count * (operator.bytes(100_000) - 100_000 * operator.activation_bytes_per_token)
        for operator in layer_and_head(name, dtype)
    )
    assert read == pytest.approx(stored, rel=0.01)


@pytest.mark.parametrize("name", ["deepseek-v3", "llama-3.1-8b", "qwen3-235b-a22b"])
def test_fp8_halves_what_the_layers_read(name):
    spec = load_model(name)
    sixteen, eight = (total_weight_bytes(layer_operators(spec, dtype, 1)) for dtype in ("bf16", "fp8"))
    assert eight == pytest.approx(sixteen / 2, rel=1e-3)


@pytest.mark.parametrize("name", ["llama-3.1-70b", "gemma-3-27b", "mixtral-8x7b", "gpt-oss-120b"])
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_tensor_parallelism_splits_the_weights_and_the_cache(name, ranks):
    spec = load_model(name)
    whole, part = (total_weight_bytes(layer_and_head(name, ranks=count)) for count in (1, ranks))
    assert part == pytest.approx(whole / ranks, rel=0.01)
    for one, split in zip(attention_work(spec, KvFormat(), 1), attention_work(spec, KvFormat(), ranks), strict=True):
        assert split.kv_bytes_per_token * ranks == one.kv_bytes_per_token
        assert split.flops_per_pair * ranks == one.flops_per_pair


def test_fewer_key_heads_than_ranks_are_replicated():
    spec = load_model("llama-3.1-70b")  # 8 of them
    (eight,), (sixteen,) = (attention_work(spec, KvFormat(), ranks) for ranks in (8, 16))
    assert sixteen.kv_bytes_per_token == eight.kv_bytes_per_token
    assert sixteen.flops_per_pair == eight.flops_per_pair / 2


def test_the_latent_is_on_every_rank():
    spec = load_model("deepseek-v3")
    (one,), (eight,) = (attention_work(spec, KvFormat(), ranks) for ranks in (1, 8))
    assert eight.kv_bytes_per_token == one.kv_bytes_per_token == 576 * 2
    assert eight.decode_flops_per_pair == one.decode_flops_per_pair / 8 == 2 * 16 * (576 + 512)
    assert one.flops_per_pair == 2 * 128 * (192 + 128)


@pytest.mark.parametrize("name", preset_names())
def test_only_models_with_rotary_embeddings_rotate(name):
    names = {operator.name for operator in layer_operators(load_model(name), "bf16", 1)}
    expected = "kv_write" if name.startswith("opt-") else "rotary_and_kv_write"
    assert names & {"kv_write", "rotary_and_kv_write"} == {expected}


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_without_rotation_keys_and_values_are_written_alone(ranks):
    """By one kernel that reads and writes 40 heads of 128 numbers each, of keys and of values."""
    (written,) = (each for each in layer_operators(load_model("opt-13b"), "bf16", ranks) if each.name == "kv_write")
    assert (written.count, written.launches) == (40, 1)
    assert written.bytes(7) == 7 * 2 * (2 * 40 * 128) * 2 / ranks


def test_learned_positions_are_looked_up_and_added():
    (embedding,) = embedding_operators(load_model("opt-13b"))
    assert (embedding.launches, embedding.bytes(7)) == (3, 7 * 3 * 5120 * 2)  # two rows read, their sum written
    (embedding,) = embedding_operators(load_model("llama-3.1-8b"))
    assert (embedding.launches, embedding.bytes(7)) == (1, 7 * 2 * 4096 * 2)


def test_a_batch_reads_as_many_experts_as_balanced_routing_hits():
    """Mixtral: 2 of 8; one token reads 2 experts, two read 8 (1 - (3/4)^2) = 3.5 on average."""
    (experts,) = (op for op in layer_operators(load_model("mixtral-8x7b"), "bf16", 1) if op.name == "experts")
    weights_read = [
        (experts.bytes(tokens) - tokens * experts.activation_bytes_per_token) / experts.weight_bytes
        for tokens in (0, 1, 2, 1000)
    ]
    assert weights_read == pytest.approx([0, 2, 3.5, 8])


def test_sliding_and_full_layers_are_counted_apart():
    works = attention_work(load_model("gemma-3-27b"), KvFormat(), 1)
    assert {(work.window_tokens, work.count) for work in works} == {(1024, 52), (None, 10)}


def test_ranks_sum_twice_a_layer_and_for_norms_over_all_heads():
    assert list(all_reduces(load_model("llama-3.1-8b"), embeds=False)) == [AllReduce("all_reduce", 64, 8192)]
    assert list(all_reduces(load_model("minimax-m2.5"))) == [
        AllReduce("all_reduce", 124, 6144),
        AllReduce("embedding_all_reduce", 1, 6144),
        AllReduce("query_key_norm_all_reduce", 62, 8),
    ]


def test_embedding_last_norm_and_sampling_are_counted_once_a_step():
    """In 16 bits: a row is read and written; the norm also adds the residual; logits are read, written and read."""
    model = load_model("llama-3.1-8b")
    (embedding,), (norm,) = embedding_operators(model), final_norm_operators(model)
    sampling = list(head_operators(model, 2))[-1]
    assert [operator.count for operator in (embedding, norm, sampling)] == [1, 1, 1]
    assert embedding.bytes(10) == 10 * 2 * 2 * 4096
    assert norm.bytes(10) == 10 * 4 * 2 * 4096
    assert sampling.bytes(10) == 10 * (2 + 4 + 4) * 128256  # every rank has all logits by then


@pytest.mark.parametrize(("name", "launches"), [("qwen3-32b", 2), ("minimax-m2.5", 4), ("llama-3.1-8b", None)])
def test_norms_on_queries_and_keys_are_kernels_of_their_own(name, launches):
    found = [operator for operator in layer_and_head(name, ranks=2) if operator.name == "query_key_norm"]
    assert [operator.launches for operator in found] == ([] if launches is None else [launches])
    if name == "qwen3-32b":  # 32 of 64 query heads and 4 of 8 key heads, 128 wide, read and written in 16 bits
        assert found[0].bytes(10) == 10 * 2 * 2 * (32 + 4) * 128
