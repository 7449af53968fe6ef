"""Models written to GGUF under llama.cpp's names and in its order give the logits of the checkpoint they came from."""

from pathlib import Path

import gguf
import pytest
import torch

from live.model.plain import plain_logits
from live.opening import open_model
from live.runner import make_runner
from simcore.core.errors import FileError
from tests.live.tiny_models import SHAPE, logits, save

ARCHITECTURES = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "mixtral": "llama",
    "qwen3-moe": "qwen3moe",
}
TOKENS = [5, 250, 7, 99, 12, 0, 31, 77, 200, 150, 3]


def llama_order(tensor: torch.Tensor, heads: int) -> torch.Tensor:
    """What llama.cpp's converter does to queries and keys of this architecture: halves of a head interleaved."""
    return tensor.view(heads, 2, -1, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape)


def convert(name: str, model: torch.nn.Module, path: Path, **more: int) -> None:
    architecture = ARCHITECTURES[name]
    config = model.config
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(SHAPE["head_dim"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    for key, value in more.items():
        writer.add_uint32(f"{architecture}.{key}", value)
    kind = next(kind for kind, text in gguf.MODEL_ARCH_NAMES.items() if text == architecture)
    names = gguf.get_tensor_name_map(kind, config.num_hidden_layers)
    for source, tensor in checkpoint_tensors(model).items():
        stem, _, suffix = source.rpartition(".")
        target = names.get_name(stem)
        assert target is not None, source
        heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(target.split(".")[-1])
        if architecture == "llama" and heads is not None:
            tensor = llama_order(tensor, heads)
        writer.add_tensor(f"{target}.{suffix}", tensor.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def checkpoint_tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """By names that gguf knows; transformers has gates and ups of all experts in one tensor."""
    found = {}
    for name, tensor in model.state_dict().items():
        if name.endswith("experts.gate_up_proj"):
            gate, up = tensor.chunk(2, dim=1)
            found[name.replace("gate_up_proj", "gate_proj.weight")] = gate
            found[name.replace("gate_up_proj", "up_proj.weight")] = up
        elif name.endswith("experts.down_proj"):
            found[name + ".weight"] = tensor
        elif name != "lm_head.weight" or not model.config.tie_word_embeddings:
            found[name] = tensor
    return found


EXPERTS = {
    "mixtral": {"expert_count": 4, "expert_used_count": 2},
    "qwen3-moe": {"expert_count": 8, "expert_used_count": 2, "expert_feed_forward_length": 48},
}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_logits_equal_those_of_the_checkpoint(name: str, tmp_path: Path) -> None:
    particulars = {"mlp_only_layers": []} if name == "qwen3-moe" else {}
    model = save(name, tmp_path / "checkpoint", **particulars)
    path = tmp_path / "model.gguf"
    convert(name, model, path, **EXPERTS.get(name, {}))
    runner = make_runner(open_model(path), blocks=1)
    torch.testing.assert_close(plain_logits(runner.weights, TOKENS), logits(model, TOKENS), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"rope.dimension_count": 8}, "rotates a part of its heads, expected all 16 dimensions"),
        ({"expert_count": 4}, "llama.expert_used_count is not a whole number above 0"),
    ],
)
def test_what_is_not_supported_is_refused(more: dict[str, int], problem: str, tmp_path: Path) -> None:
    model = save("llama", tmp_path / "checkpoint")
    convert("llama", model, tmp_path / "model.gguf", **more)
    with pytest.raises(FileError, match=problem):
        open_model(tmp_path / "model.gguf")
