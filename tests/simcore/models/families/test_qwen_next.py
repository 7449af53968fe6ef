"""Qwen3-Next and Qwen3.5: which layers have linear attention, and which configurations are refused."""

import json
from dataclasses import replace

import pytest

from simcore.core.errors import InputError
from simcore.models import DenseFeedForward, count_parameters, load_model, load_preset, read_config

QWEN3_NEXT = load_preset("qwen3-next-80b-a3b").config
QWEN35 = load_preset("qwen3.5-397b-a17b").config

# Qwen3.5-27B (slime's scripts/models/qwen3.5-27B.sh; heads of linear attention: transformers and vLLM fixtures).
QWEN35_27B = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "dtype": "bfloat16",
    "model_type": "qwen3_5",
    "text_config": {
        "head_dim": 256,
        "hidden_size": 5120,
        "intermediate_size": 17408,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 48,
        "linear_value_head_dim": 128,
        "max_position_embeddings": 262144,
        "model_type": "qwen3_5_text",
        "num_attention_heads": 24,
        "num_hidden_layers": 64,
        "num_key_value_heads": 4,
        "vocab_size": 248320,
    },
}


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


def of_text(config, **keys):
    return {**config, "text_config": {**config["text_config"], **keys}}


def kinds(config):
    spec = read_config(config, "m")
    return [type(spec.layer_groups[place].attention).__name__ for place in spec.layer_order]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (QWEN35_27B, 26_895_998_464),
        (
            of_text(
                QWEN35,
                hidden_size=2048,
                num_hidden_layers=40,
                num_attention_heads=16,
                linear_num_value_heads=32,
                num_experts=256,
                num_experts_per_tok=8,
                moe_intermediate_size=512,
                shared_expert_intermediate_size=512,
            ),
            34_660_610_688,
        ),
        (
            of_text(QWEN35, hidden_size=3072, num_hidden_layers=48, num_experts=256, num_experts_per_tok=8),
            122_111_526_912,
        ),
    ],
    ids=["qwen3.5-27b", "qwen3.5-35b-a3b", "qwen3.5-122b-a10b"],
)
def test_models_beyond_the_presets_have_their_published_size(config, expected):
    assert count_parameters(read_config(config, "m")).total == expected


def test_every_fourth_layer_of_qwen3_next_has_full_attention():
    assert kinds(QWEN3_NEXT) == 12 * (3 * ["LinearAttention"] + ["Attention"])
    assert kinds({**without(QWEN3_NEXT, "full_attention_interval"), "num_hidden_layers": 5})[3:] == [
        "Attention",
        "LinearAttention",
    ]
    assert kinds({**QWEN3_NEXT, "full_attention_interval": 2, "num_hidden_layers": 3})[1] == "Attention"


def test_layer_types_overrule_the_interval():
    types = ["full_attention", "linear_attention", "linear_attention"]
    assert kinds({**QWEN3_NEXT, "num_hidden_layers": 3, "layer_types": types}) == [
        "Attention",
        "LinearAttention",
        "LinearAttention",
    ]


def test_qwen3_next_can_have_dense_layers():
    spec = read_config({**QWEN3_NEXT, "mlp_only_layers": [0], "num_hidden_layers": 4}, "m")
    dense = [place for place in spec.layer_order if spec.layer_groups[place].feed_forward == DenseFeedForward(5120)]
    assert dense == [0]
    assert [group.count for group in spec.layer_groups] == [1, 2, 1]


@pytest.mark.parametrize("config", [QWEN35, QWEN35_27B], ids=["experts", "dense"])
def test_the_language_model_of_qwen35_is_read_alone_too(config):
    text = {"torch_dtype": "bfloat16", **config["text_config"]}
    within = read_config(config, "m")
    assert "the language model alone" in within.notices[0]
    alone = replace(within, notices=())
    assert read_config(text, "m") == alone
    name = config["architectures"][0].replace("ConditionalGeneration", "CausalLM")
    assert read_config({**text, "architectures": [name]}, "m") == alone


def test_tied_embeddings_may_be_stated_beside_the_language_model():
    assert read_config({**QWEN35_27B, "tie_word_embeddings": True}, "m").tied_embeddings
    assert not read_config(
        {**of_text(QWEN35_27B, tie_word_embeddings=False), "tie_word_embeddings": True}, "m"
    ).tied_embeddings


def test_attention_without_an_output_gate_is_read():
    spec = read_config(of_text(QWEN35_27B, attn_output_gate=False), "m")
    assert not spec.layer_groups[1].attention.output_gate


def test_qwen35_in_blocks_of_fp8_is_read():
    quantised = {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": ["lm_head"]}
    assert read_config({**QWEN35, "quantization_config": quantised}, "m").dtype == "fp8-block"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {**QWEN3_NEXT, "linear_num_value_heads": 24},
            "linear_num_value_heads is 24, expected a multiple of linear_num_key_heads (16).",
        ),
        (
            {**QWEN3_NEXT, "layer_types": ["full_attention"]},
            "layer_types is ['full_attention'], expected one entry for each of the 48 layers, not 1.",
        ),
        (
            {**QWEN3_NEXT, "layer_types": ["sliding_attention"]},
            "layer_types.0 is 'sliding_attention', expected one of full_attention, linear_attention. "
            "Did you mean 'linear_attention'?",
        ),
        (
            {**QWEN3_NEXT, "num_hidden_layers": 1, "layer_types": ["linear_attention"]},
            "layer_types is ['linear_attention'], expected full_attention for one layer at least, "
            "as a request without a KV cache is not modelled.",
        ),
        (
            {**QWEN3_NEXT, "full_attention_interval": 49},
            "full_attention_interval is 49, expected at most 48, so that one layer at least has full attention.",
        ),
        (
            {**without(QWEN3_NEXT, "full_attention_interval"), "num_hidden_layers": 3},
            "full_attention_interval is 4, expected at most 3, so that one layer at least has full attention.",
        ),
        (
            of_text(QWEN35, decoder_sparse_step=2),
            "text_config.decoder_sparse_step is 2, expected 1.",
        ),
        (
            without(QWEN3_NEXT, "linear_num_key_heads"),
            "linear_num_key_heads is missing, expected a whole number greater than 0.",
        ),
        (
            of_text(QWEN35, mlp_only_layers=[1]),
            "text_config.mlp_only_layers is [1], expected none, as every layer of Qwen3.5 with experts has them.",
        ),
    ],
)
def test_an_absurd_configuration_is_refused_in_one_sentence(tmp_path, config, message):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_model(str(path))
    assert str(caught.value) == f"{path}: {message}"
