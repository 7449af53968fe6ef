"""Reading a Hugging Face config.json: what is understood, and what is refused with one clear sentence."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.core.errors import FileError, InputError, UnknownNameError
from simcore.models import count_parameters, load_model, load_preset, read_config

LLAMA = load_preset("llama-3.1-8b").config
MISTRAL = load_preset("mistral-7b").config
MIXTRAL = load_preset("mixtral-8x7b").config
QWEN2 = load_preset("qwen2.5-7b").config
QWEN3_MOE = load_preset("qwen3-30b-a3b").config
GEMMA3 = load_preset("gemma-3-27b").config
PHI3 = load_preset("phi-3-mini").config
OPT = load_preset("opt-13b").config
DEEPSEEK_V3 = load_preset("deepseek-v3").config
GEMMA2_27B = {
    "architectures": ["Gemma2ForCausalLM"],
    "head_dim": 128,
    "hidden_size": 4608,
    "intermediate_size": 36864,
    "max_position_embeddings": 8192,
    "model_type": "gemma2",
    "num_attention_heads": 32,
    "num_hidden_layers": 46,
    "num_key_value_heads": 16,
    "sliding_window": 4096,
    "torch_dtype": "float32",
    "vocab_size": 256000,
}


def write(folder, config):
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


def windows(config):
    return [(group.count, group.attention.window_tokens) for group in read_config(config, "m").layer_groups]


@pytest.mark.parametrize("name", ["llama-2-70b", "opt-66b", "gpt-oss-120b", "gemma-3-27b", "deepseek-v2-lite"])
def test_a_file_and_its_folder_read_like_the_preset(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    path = write(folder, load_preset(name).config)
    assert load_model(str(path)) == load_model(name)
    assert load_model(str(folder)) == load_model(name)


def test_a_file_of_another_name_names_the_model(tmp_path):
    path = tmp_path / "my-model.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert load_model(str(path)).name == "my-model"


def test_a_multimodal_file_is_read_for_its_language_model(tmp_path):
    spec = load_model(str(write(tmp_path, {**GEMMA3, "vision_config": {"hidden_size": 1152}})))
    assert (spec.family, spec.layers, spec.vocabulary_size, spec.dtype) == ("gemma3", 62, 262_208, "bf16")


def test_the_newer_spelling_of_the_dtype_is_understood():
    config = {**without(LLAMA, "torch_dtype"), "dtype": "float16"}
    assert read_config(config, "m").dtype == "fp16"


@pytest.mark.parametrize(
    ("model_type", "architecture", "expected"),
    [
        ("qwen2", "LlamaForCausalLM", "llama"),
        ("llama", "Qwen2ForCausalLM", "qwen2"),
        ("gemma2", "Gemma3ForCausalLM", "gemma3"),
    ],
)
def test_a_type_that_contradicts_the_architecture_is_refused(model_type, architecture, expected):
    config = {**LLAMA, "model_type": model_type, "architectures": [architecture]}
    with pytest.raises(InputError) as caught:
        read_config(config, "m", "config.json: ")
    said = f"config.json: model_type is '{model_type}', expected {expected}, as architectures is {architecture}."
    assert str(caught.value) == said


def test_the_architecture_is_found_by_model_type_where_a_file_leaves_architectures_out():
    assert read_config(without(LLAMA, "architectures"), "m") == read_config(LLAMA, "m")


def test_a_derived_model_is_read_by_its_architecture():
    assert read_config({**DEEPSEEK_V3, "model_type": "kimi_k2"}, "m").family == "deepseek_v3"


# Counts of the safetensors files on the Hugging Face hub; of Qwen3.5 the language model alone, as llama.cpp counts it.
@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (GEMMA2_27B, 27_227_128_320),
        (
            {
                **OPT,
                "hidden_size": 768,
                "word_embed_proj_dim": 768,
                "ffn_dim": 3072,
                "num_hidden_layers": 12,
                "num_attention_heads": 12,
            },
            125_239_296,
        ),
        (
            {
                **OPT,
                "hidden_size": 1024,
                "word_embed_proj_dim": 512,
                "ffn_dim": 4096,
                "num_hidden_layers": 24,
                "num_attention_heads": 16,
                "do_layer_norm_before": False,
            },
            331_196_416,
        ),
    ],
    ids=["gemma-2-27b", "opt-125m", "opt-350m"],
)
def test_models_beyond_the_presets_have_their_published_size(config, expected):
    assert count_parameters(read_config(config, "m")).total == expected


def test_gemma2_alternates_between_local_and_global_layers():
    assert windows(GEMMA2_27B) == [(23, 4096), (23, None)]


@pytest.mark.parametrize("key", ["sliding_window_pattern", "_sliding_window_pattern"])
def test_gemma3_windows_follow_the_pattern(key):
    config = {**GEMMA3, "text_config": {**GEMMA3["text_config"], key: 4}}
    assert windows(config) == [(47, 1024), (15, None)]


def test_layer_types_overrule_the_pattern():
    types = ["full_attention"] * 60 + ["sliding_attention"] * 2
    config = {**GEMMA3, "text_config": {**GEMMA3["text_config"], "sliding_window_pattern": 6, "layer_types": types}}
    assert windows(config) == [(60, None), (2, 1024)]


def test_qwen2_windows_count_only_when_switched_on():
    narrow = {**QWEN2, "sliding_window": 4096, "max_window_layers": 20}
    assert windows(narrow) == [(28, None)]
    assert windows({**narrow, "use_sliding_window": True}) == [(20, None), (8, 4096)]


def test_mistral_must_say_whether_it_has_a_window():
    assert windows({**MISTRAL, "sliding_window": None}) == [(32, None)]
    with pytest.raises(InputError, match="sliding_window is missing"):
        windows(without(MISTRAL, "sliding_window"))


def test_a_window_as_wide_as_the_context_is_none():
    assert windows({**PHI3, "max_position_embeddings": 2047}) == [(32, None)]


def test_qwen3_moe_can_have_dense_layers():
    spec = read_config({**QWEN3_MOE, "decoder_sparse_step": 2, "mlp_only_layers": [1, 3]}, "m")
    assert [group.count for group in spec.layer_groups] == [26, 22]


def test_llama_biases_are_read():
    biased = read_config({**LLAMA, "attention_bias": True, "mlp_bias": True}, "m")
    more = count_parameters(biased).total - count_parameters(read_config(LLAMA, "m")).total
    assert more == 32 * ((4096 + 1024 + 1024 + 4096) + (14336 + 14336 + 4096))


@given(types=st.lists(st.sampled_from(["full_attention", "sliding_attention"]), min_size=1, max_size=80))
def test_layers_are_grouped_by_kind_and_none_is_lost(types):
    text = {**GEMMA3["text_config"], "layer_types": types, "num_hidden_layers": len(types)}
    spec = read_config({**GEMMA3, "text_config": text}, "m")
    sliding = [group.count for group in spec.layer_groups if group.attention.window_tokens is not None]
    assert spec.layers == len(types)
    assert len(spec.layer_groups) == len(set(types))
    assert sum(sliding) == types.count("sliding_attention")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            without(LLAMA, "hidden_size"),
            "hidden_size is missing, expected a whole number greater than 0.",
        ),
        (
            without(LLAMA, "torch_dtype"),
            "torch_dtype is missing, expected one of bfloat16, float16, float32.",
        ),
        (
            {**LLAMA, "num_attention_heads": 0},
            "num_attention_heads is 0, expected a whole number greater than 0.",
        ),
        ({**LLAMA, "vocab_size": -1}, "vocab_size is -1, expected a whole number greater than 0."),
        ({**LLAMA, "vocab_size": 1.5}, "vocab_size is 1.5, expected a whole number greater than 0."),
        ({**LLAMA, "hidden_size": True}, "hidden_size is true, expected a whole number greater than 0."),
        (
            {**LLAMA, "num_hidden_layers": 10**12},
            "num_hidden_layers is 1000000000000, expected a whole number greater than 0 and of at most 10000.",
        ),
        (
            {**LLAMA, "intermediate_size": 10**9},
            "intermediate_size is 1000000000, expected a number of at most 100,000,000.",
        ),
        (
            {**LLAMA, "num_key_value_heads": 7},
            "num_key_value_heads is 7, expected a divisor of num_attention_heads (32).",
        ),
        (
            {**LLAMA, "num_attention_heads": 24},
            "head_dim is empty, expected a whole number, since hidden_size (4096) is no multiple of "
            "num_attention_heads (24).",
        ),
        (
            {**MIXTRAL, "num_local_experts": 1},
            "num_local_experts is 1, expected at least num_experts_per_tok (2).",
        ),
        (
            {**GEMMA3, "text_config": {**GEMMA3["text_config"], "layer_types": ["full_attention"]}},
            "text_config.layer_types is ['full_attention'], expected one entry for each of the 62 layers, not 1.",
        ),
        (
            {**DEEPSEEK_V3, "quantization_config": {"quant_method": "bitsandbytes"}},
            "quantization_config.quant_method is 'bitsandbytes', expected one of auto-round, awq, compressed-tensors, "
            "fbgemm_fp8, fp8, gptq, modelopt, modelopt_fp4, modelopt_fp8, mxfp4.",
        ),
    ],
)
def test_an_absurd_configuration_is_refused_in_one_sentence(tmp_path, config, message):
    path = write(tmp_path, config)
    with pytest.raises(InputError) as caught:
        load_model(str(path))
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    "config",
    [
        {**LLAMA, "architectures": ["MambaForCausalLM"]},
        {**without(LLAMA, "architectures"), "model_type": "mamba"},
        without(LLAMA, "architectures", "model_type"),
    ],
)
def test_an_unsupported_architecture_is_refused_with_the_supported_ones(config):
    with pytest.raises(InputError) as caught:
        read_config(config, "m")
    message = str(caught.value).lower()
    for family in ("llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_5", "gemma2", "gemma3", "phi3", "opt"):
        assert family in message
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{\n"hidden_size": }', r"config\.json, line 2: not valid JSON \(Expecting value\)\."),
        (b"[]", r"config\.json: expected a JSON object of configuration keys\."),
        (b"{\n\xff\xfe", r"config\.json, line 2: is not UTF-8 text, expected a JSON file\."),
        (b"[" * 100_000, r"config\.json: not valid JSON \(it is nested too deeply\)\."),
        (b"[" + b"9" * 5000 + b"]", r"config\.json: not valid JSON \(it holds a number beyond all bounds\)\."),
    ],
)
def test_a_broken_file_is_named(tmp_path, content, message):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(FileError, match=message):
        load_model(str(tmp_path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileError, match=r"absent\.json: no such file\."):
        load_model(str(tmp_path / "absent.json"))
    with pytest.raises(FileError, match=r"config\.json: no such file\."):
        load_model(str(tmp_path))


def test_a_repository_name_of_the_hub_points_to_the_known_model():
    with pytest.raises(FileError, match=r"known by name is 'llama-3\.1-8b'\."):
        load_model("meta-llama/Llama-3.1-8B")


def test_a_name_that_is_neither_model_nor_path_is_unknown():
    with pytest.raises(UnknownNameError, match="model is 'gpt-5'"):
        load_model("gpt-5")
