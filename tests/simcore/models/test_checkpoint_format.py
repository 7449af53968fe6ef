"""Quantised checkpoints: weights, KV cache and what is left out, by what each way of quantising writes."""

import json
from pathlib import Path

import pytest

from simcore.core.errors import FileError, InputError
from simcore.models import load_model, load_preset, rank_weight_bytes, read_config, weight_bytes
from simcore.models.left_out_modules import ModuleNames
from simcore.models.weight_formats import Role

QUANTISED = Path(__file__).parent / "quantised"
LLAMA_70B = {key: value for key, value in load_preset("llama-3.1-70b").config.items() if key != "quantization_config"}
DEEPSEEK_V3 = {key: value for key, value in load_preset("deepseek-v3").config.items() if key != "quantization_config"}
QWEN3_MOE = load_preset("qwen3-30b-a3b").config
PARAMETERS = 70_553_706_496
OUTSIDE = 2 * 128_256 * 8_192 + (2 * 80 + 1) * 8_192
"""Embedding, head and norms of the 70B model, in 16 bits whatever else is quantised."""
MATRICES = PARAMETERS - OUTSIDE
ROWS = 80 * (8_192 + 2 * 1_024 + 8_192 + 2 * 28_672 + 8_192)
"""Output channels of its matrices."""


def scheme(bits, kind, strategy, group_size=None, symmetric=True):
    return {
        "num_bits": bits,
        "type": kind,
        "strategy": strategy,
        "group_size": group_size,
        "symmetric": symmetric,
        "dynamic": False,
    }


def compressed(weights, inputs=None, **others):
    groups = {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": inputs}}
    return {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": ["lm_head"], **others}


@pytest.mark.parametrize(
    ("keys", "dtype", "matrix_bytes"),
    [
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8", MATRICES + 80 * 7 * 4),
        ({"quant_method": "fp8"}, "fp8", MATRICES + 80 * 7 * 4),
        ({"quant_method": "fbgemm_fp8"}, "fp8-channel", MATRICES + 4 * ROWS),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block", MATRICES + 4 * MATRICES // 128**2),
        (
            {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
            "int4",
            MATRICES * (4 + 20 / 128) / 8,
        ),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, "int4-g64", MATRICES * (4 + 20 / 64) / 8),
        (
            {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False},
            "int4",
            MATRICES * (4 + 20 / 128) / 8,
        ),
        ({"quant_method": "gptq", "bits": 8, "group_size": 32}, "int8-g32", MATRICES * (8 + 24 / 32) / 8),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, "int4-channel", MATRICES / 2 + ROWS * 2.5),
        ({"quant_method": "auto-round", "bits": 2, "group_size": 128}, "int2-g128", MATRICES * (2 + 18 / 128) / 8),
        (
            compressed(scheme(8, "float", "channel"), scheme(8, "float", "token")),
            "fp8-channel",
            MATRICES + 4 * ROWS,
        ),
        (compressed(scheme(8, "float", "tensor"), scheme(8, "float", "tensor")), "fp8", MATRICES + 80 * 7 * 4),
        (compressed(scheme(8, "int", "channel"), scheme(8, "int", "token")), "int8", MATRICES + 4 * ROWS),
        (compressed(scheme(4, "int", "group", 128)), "int4-sym-g128", MATRICES * (4 + 16 / 128) / 8),
        (compressed(scheme(4, "int", "group", 128, symmetric=False)), "int4", MATRICES * (4 + 20 / 128) / 8),
        (compressed(scheme(8, "int", "channel")), "int8-sym-channel", MATRICES + 2 * ROWS),
        (
            compressed(scheme(4, "float", "tensor_group", 16), scheme(4, "float", "tensor_group", 16)),
            "nvfp4",
            MATRICES * 4.5 / 8,
        ),
        ({"quant_method": "modelopt", "quantization": {"quant_algo": "NVFP4"}}, "nvfp4", MATRICES * 4.5 / 8),
        (
            {"quant_method": "modelopt", "quant_algo": "W4A16_AWQ", "group_size": 128},
            "int4",
            MATRICES * (4 + 20 / 128) / 8,
        ),
    ],
)
def test_bytes_of_a_70b_checkpoint(keys, dtype, matrix_bytes):
    spec = read_config({**LLAMA_70B, "quantization_config": keys}, "m")
    assert spec.dtype == dtype
    assert weight_bytes(spec) == matrix_bytes + 2 * OUTSIDE
    assert spec.notices == ()


def folder_with(tmp_path, config, quantization):
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(quantization))
    return str(tmp_path)


def test_the_file_of_modelopt_beside_the_configuration_counts(tmp_path):
    quantization = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}
    spec = load_model(folder_with(tmp_path, LLAMA_70B, {"producer": {}, "quantization": quantization}))
    assert (spec.dtype, spec.kv_dtype) == ("fp8", "fp8")
    assert rank_weight_bytes(spec, None, ranks=4) == pytest.approx(18.17e9, rel=1e-3)
    assert rank_weight_bytes(spec, "bf16", ranks=4) == pytest.approx(35.3e9, rel=1e-3)


def test_the_configuration_itself_goes_before_the_file_beside_it(tmp_path):
    config = {**LLAMA_70B, "quantization_config": {"quant_method": "fbgemm_fp8"}}
    assert load_model(folder_with(tmp_path, config, {"quantization": {"quant_algo": "NVFP4"}})).dtype == "fp8-channel"


def test_a_file_that_quantises_nothing_changes_nothing(tmp_path):
    assert load_model(folder_with(tmp_path, LLAMA_70B, {"quantization": {"quant_algo": None}})).dtype == "bf16"


def test_a_file_of_another_form_is_named(tmp_path):
    with pytest.raises(FileError, match=r"hf_quant_config\.json: expected a JSON object with an object called"):
        load_model(folder_with(tmp_path, LLAMA_70B, {"quant_algo": "FP8"}))


@pytest.mark.parametrize(
    ("keys", "kv_dtype"),
    [
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "INT8"}, "int8"),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": scheme(8, "float", "tensor")}, "fp8"),
        (compressed(scheme(4, "int", "group", 128), kv_cache_scheme=scheme(8, "float", "tensor")), "fp8"),
        (compressed(scheme(4, "int", "group", 128), kv_cache_scheme=None), None),
    ],
)
def test_the_kv_cache_is_read(keys, kv_dtype):
    assert read_config({**LLAMA_70B, "quantization_config": keys}, "m").kv_dtype == kv_dtype


ATTENTION = {Role.ATTENTION, Role.ATTENTION_OUTPUT}


@pytest.mark.parametrize(
    ("left_out", "kept"),
    [
        ({"exclude_modules": ["lm_head", "model.layers.*.self_attn*"]}, [(80, ATTENTION)]),
        (
            {"exclude_modules": ["model.layers.0.mlp", "model.layers.79.*"]},
            [(1, {Role.LINEAR}), (78, set()), (1, ATTENTION | {Role.LINEAR})],
        ),
        ({"ignore": ["re:.*self_attn.(q|k|v)_proj"]}, [(80, {Role.ATTENTION})]),
        ({"ignored_layers": ["model.layers.5.self_attn.o_proj"]}, [(79, set()), (1, {Role.ATTENTION_OUTPUT})]),
        ({"modules_to_not_convert": ["gate", "visual", "self_attn"]}, [(80, ATTENTION)]),
    ],
)
def test_what_is_left_out_keeps_16_bits(left_out, kept):
    keys = {"quant_method": "modelopt", "quant_algo": "FP8", **left_out}
    spec = read_config({**LLAMA_70B, "quantization_config": keys}, "m")
    assert sorted((group.count, set(group.kept)) for group in spec.layer_groups) == sorted(kept)
    sizes = {Role.ATTENTION: 8_192 * (8_192 + 2_048), Role.ATTENTION_OUTPUT: 8_192**2, Role.LINEAR: 3 * 8_192 * 28_672}
    more = sum(count * sizes[role] for count, roles in kept for role in roles)
    whole = weight_bytes(spec, "fp8-channel") - 4 * ROWS
    assert weight_bytes(spec) == pytest.approx(whole + more, rel=1e-6)


def test_part_of_a_layers_matrices_is_told():
    keys = {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.3.mlp.down_proj"]}
    (notice,) = read_config({**LLAMA_70B, "quantization_config": keys}, "m").notices
    assert notice.startswith("The checkpoint leaves part of the linear matrices of layer 3 in 16 bits")


def test_targets_other_than_all_linear_modules_leave_out_the_rest():
    keys = compressed(scheme(8, "float", "channel"), scheme(8, "float", "token"))
    keys["config_groups"]["group_0"]["targets"] = ["re:.*mlp.experts.*"]
    spec = read_config({**QWEN3_MOE, "quantization_config": keys}, "m")
    assert [group.kept for group in spec.layer_groups] == [ATTENTION]


EXPERTS_ALONE = ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"]


@pytest.mark.parametrize(
    ("keys", "dtype"),
    [
        (compressed(scheme(4, "int", "group", 32), ignore=EXPERTS_ALONE), "int4-experts"),
        (
            {
                "quant_method": "modelopt",
                "quant_algo": "NVFP4",
                "exclude_modules": ["*self_attn.q_*", "*self_attn.kv_*"],
            },
            "nvfp4-no-qkv",
        ),
    ],
)
def test_a_format_of_just_these_matrices_is_called_by_its_name(keys, dtype):
    spec = read_config({**DEEPSEEK_V3, "quantization_config": keys}, "m")
    assert spec.dtype == dtype
    assert not any(group.kept for group in spec.layer_groups)


def test_experts_of_packed_integers_are_read_within_a_multimodal_configuration():
    keys = compressed(scheme(4, "int", "group", 32), ignore=EXPERTS_ALONE)
    text = {**DEEPSEEK_V3, "model_type": "kimi_k2", "quantization_config": keys}
    config = {"architectures": ["KimiK25ForConditionalGeneration"], "dtype": "bfloat16", "text_config": text}
    assert read_config(config, "m").dtype == "int4-experts"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "quant_method is 'bitsandbytes', expected one of"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "quant_algo is 'MIXED_PRECISION'"),
        ({"quant_method": "gptq", "bits": 5, "group_size": 128}, "bits is 5, expected one of"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"+:.*": {}}}, "that leave modules out"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "lm_head": True}, "lm_head is true"),
        (compressed(scheme(6, "int", "group", 128)), "integers of 2, 3, 4 or 8 bits alone"),
        (compressed(scheme(8, "float", "channel")), "fp8 with fp8 activations"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {
                "a": {"weights": scheme(4, "int", "group", 128)}, "b": {"weights": scheme(8, "int", "channel")}}},
            "groups of one format, not of int4-sym-g128 and int8-sym-channel",
        ),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused_by_name(keys, message):
    with pytest.raises(InputError) as caught:
        read_config({**LLAMA_70B, "quantization_config": keys}, "m", "config.json: ")
    assert message in str(caught.value)
    assert str(caught.value).startswith("config.json: quantization_config")


@pytest.mark.parametrize("name", sorted(path.stem for path in QUANTISED.glob("*.json")))
def test_published_checkpoints_leave_out_what_their_lists_say(tmp_path, name):
    """Lists of up to some hundred modules, layer by layer; ``kept`` are layers that keep roles, by number."""
    published = json.loads((QUANTISED / f"{name}.json").read_text(encoding="utf-8"))
    spec = load_model(folder_with(tmp_path, published["config"], published["hf_quant_config"]))
    assert (spec.dtype, spec.kv_dtype) == (published["weights"], published["kv_cache"])
    kept = [[group.count, sorted(role.value for role in group.kept)] for group in spec.layer_groups if group.kept]
    assert sorted(kept) == published["kept"]
    assert not [notice for notice in spec.notices if "leaves part" in notice]


def test_a_module_is_told_by_any_parts_of_its_names_in_succession():
    module = "layers.1.mlp.up_proj"
    for prefix in ("model", "language_model.model", "model.language_model", "language_model", "backbone"):
        parts = f"{prefix}.{module}".split(".")
        for start in range(len(parts)):
            for end in range(start + 1, len(parts) + 1):
                assert module in ModuleNames.of([".".join(parts[start:end])])
    for other in (
        "layers.10",
        "proj",
        "up_proj.mlp",
        "model.model",
        "backbone.model.layers",
        "ayers.1.mlp",
        "layers.1.",
    ):
        assert module not in ModuleNames.of([other])
