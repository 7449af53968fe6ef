"""Published configurations of many families: parameters, KV bytes, and that nothing in them goes unread.

Each file of ``published`` is one model: its configuration, the parameters that its publisher counts, those that the
modules of the Transformers library hold (tools/count_published_models.py), and KV bytes per token in 16 bits by hand.
"""

import pytest

from simcore.core.errors import InputError
from simcore.memory.kv_bytes import kv_bytes_per_token
from simcore.models import count_parameters, rank_weight_bytes, read_config
from tests.simcore.models.published_models import NAMES, entry

SMALL_DIFFERENCE = 1e-4
"""Biases of heads, norms without weights, scales of routers: what families say that they leave out."""


def test_there_are_many():
    assert len(NAMES) >= 110


@pytest.mark.parametrize("name", NAMES)
def test_a_published_model_is_read_whole(name):
    published = entry(name)
    spec = read_config(published["config"], name)
    count = count_parameters(spec).total
    assert count == pytest.approx(published["parameters"], rel=0.005)
    if published["transformers"] is not None:
        assert count == pytest.approx(published["transformers"]["parameters"], rel=SMALL_DIFFERENCE)
    assert kv_bytes_per_token(spec) == published["kv_bytes_per_token"]
    assert not [notice for notice in spec.notices if "left unread" in notice]
    assert published["source"]
    assert published["parameters_source"]


@pytest.mark.parametrize("name", NAMES)
def test_ranks_hold_a_share_of_a_published_model(name):
    spec = read_config(entry(name)["config"], name)
    whole, half = rank_weight_bytes(spec, None, ranks=1), rank_weight_bytes(spec, None, ranks=2)
    assert whole / 2 <= half < 0.75 * whole


def test_an_unknown_key_that_says_something_is_told():
    config = entry("llama-3.2-1b")["config"]
    assert read_config({**config, "layer_sharing": 2}, "m").notices == (
        "Keys in the configuration of m that are not known were left unread: layer_sharing.",
    )
    assert read_config({**config, "layer_sharing": False, "rope_theta": 5e5, "pad_token_id": 3}, "m").notices == ()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("qwen3-vl-8b", "images count as the prompt tokens that they become"),
        ("llama-4-scout", "slide over as many"),
        ("deepseek-v3.2", "2,048 tokens are attended to"),
        ("jamba-v0.1", "State-space layers are priced by the roofline"),
    ],
)
def test_what_is_left_out_or_taken_for_something_else_is_told(name, said):
    assert any(said in notice for notice in read_config(entry(name)["config"], name).notices)


def test_models_without_images_say_nothing_of_them():
    for name in ("glm-5.2", "nemotron-3-super-120b-a12b", "qwen2.5-3b"):
        assert not any("images" in notice for notice in read_config(entry(name)["config"], name).notices)


def test_a_part_that_leaves_out_its_defaults_has_those_of_its_family():
    text = {
        "model_type": "mistral",
        "hidden_size": 5120,
        "head_dim": 128,
        "num_hidden_layers": 40,
        "vocab_size": 131_072,
    }
    spec = read_config(
        {"architectures": ["LlavaForConditionalGeneration"], "dtype": "bfloat16", "text_config": text}, "m"
    )
    nemo = read_config(entry("mistral-nemo-12b")["config"], "m")
    assert count_parameters(spec) == count_parameters(nemo)


@pytest.mark.parametrize(
    ("architecture", "model_type"),
    [
        ("MambaForCausalLM", "mamba"),
        ("Gemma3nForConditionalGeneration", "gemma3n"),
        ("DeepseekV4ForCausalLM", "deepseek_v4"),
    ],
)
def test_what_no_family_reads_is_refused_by_name(architecture, model_type):
    with pytest.raises(InputError, match=f"architectures is '{architecture}'"):
        read_config({**entry("llama-3.2-1b")["config"], "architectures": [architecture], "model_type": model_type}, "m")


def test_gemma_4_with_embeddings_per_layer_is_refused():
    config = entry("gemma-4-31b")["config"]
    text = {**config["text_config"], "hidden_size_per_layer_input": 256}
    with pytest.raises(InputError, match=r"text_config\.hidden_size_per_layer_input is 256, expected 0"):
        read_config({**config, "text_config": text}, "m")


ONE_EACH = "expected one entry for each of the"


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("hunyuan-a13b", {"moe_topk": [8] * 3}, f"moe_topk is [8, 8, 8], {ONE_EACH} 32 layers, not 3."),
        ("llama-3.3-nemotron-super-49b", {"block_configs": []}, f"block_configs is [], {ONE_EACH} 80 layers, not 0."),
        ("mimo-v2-flash", {"hybrid_layer_pattern": [0]}, f"hybrid_layer_pattern is [0], {ONE_EACH} 48 layers, not 1."),
        ("glm-5.2", {"indexer_types": ["full"]}, f"indexer_types is ['full'], {ONE_EACH} 78 layers, not 1."),
        ("nemotron-h-8b", {"hybrid_override_pattern": "MM"}, "hybrid_override_pattern is 'MM', expected one of M, *,"),
        ("granite-4.0-h-small", {"layer_types": ["mamba"] * 40}, "layers with attention is 0, expected attention in"),
        ("bamba-9b", {"attn_layer_indices": [99]}, "layers with attention is 0, expected attention in one layer"),
        (
            "falcon-40b",
            {"num_kv_heads": 7},
            "heads of keys and values is 7, expected a divisor of the 128 query heads.",
        ),
        ("glm-4.5-air", {"n_routed_experts": 2}, "experts is 2, expected at least the 8 that a token runs through."),
        ("starcoder2-3b", {"mlp_type": "gated"}, "mlp_type is 'gated', expected one of default."),
        ("command-r-35b", {"use_parallel_block": False}, "use_parallel_block is false, expected True"),
        ("dbrx-132b", {"ffn_config": None}, "ffn_config is empty, expected a mapping of ffn_hidden_size"),
    ],
)
def test_an_absurd_configuration_of_any_family_is_refused_in_one_sentence(name, changes, message):
    with pytest.raises(InputError) as caught:
        read_config({**entry(name)["config"], **changes}, "m", "config.json: ")
    assert str(caught.value).startswith(f"config.json: {message}")
