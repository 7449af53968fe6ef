"""The weights of a GGUF file under the names, and in the order, that Hugging Face gives them."""

import re
from typing import Any

import torch

from live.weights.gguf_file import GgufFile
from live.weights.source import WeightSource
from simcore.core.errors import FileError

_ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3moe": "Qwen3MoeForCausalLM",
}
_TOP = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_IN_LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "block_sparse_moe.gate": "ffn_gate_inp",
}
_EXPERT_PARTS = {"gate_proj": "gate", "up_proj": "up", "down_proj": "down", "w1": "gate", "w3": "up", "w2": "down"}
_LAYER = re.compile(r"model\.layers\.(\d+)\.(.+)\.(weight|bias)")
_EXPERT = re.compile(r"(?:mlp|block_sparse_moe)\.experts\.(\d+)\.(\w+)")


class GgufWeights(WeightSource):
    """The weights of a GGUF file, dequantised to float32."""

    def __init__(self, file: GgufFile) -> None:
        self.file = file
        keys = _Keys(file)
        # llama.cpp rotates neighbours in this architecture, so its files hold queries and keys in that order.
        self._interleaved = keys.architecture == "llama"
        self._heads = {"attn_q": keys.heads, "attn_k": keys.kv_heads}
        self._experts: dict[str, torch.Tensor] = {}

    def has(self, name: str) -> bool:
        """Whether the file has it, under the name that GGUF gives it."""
        return self._place(name)[0] in self.file.tensors

    def tensor(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """In float32."""
        stored_name, expert = self._place(name)
        stored = self.file.tensors.get(stored_name)
        if stored is None:
            raise FileError(self.file.path, f"has no tensor {stored_name!r}")
        if (stored.shape[1:] if expert is not None else stored.shape) != shape:
            raise FileError(self.file.path, f"tensor {stored_name!r} is {list(stored.shape)}, expected {list(shape)}")
        if expert is not None:
            return self._expert(stored_name, expert)
        tensor = self.file.read(stored_name)
        heads = self._heads.get(stored_name.split(".")[-2]) if self._interleaved else None
        return tensor if heads is None else in_halves(tensor, heads)

    def _expert(self, stored_name: str, expert: int) -> torch.Tensor:
        """One expert of a tensor of all, of which the last that was asked for is kept."""
        if stored_name not in self._experts:
            self._experts = {stored_name: self.file.read(stored_name)}
        experts = self._experts[stored_name]
        if expert >= len(experts):
            raise FileError(self.file.path, f"tensor {stored_name!r} has {len(experts)} experts, expected {expert + 1}")
        return experts[expert]

    @staticmethod
    def _place(name: str) -> tuple[str, int | None]:
        """The name of a tensor in GGUF, and which of its experts is meant."""
        if name in _TOP:
            return _TOP[name], None
        match = _LAYER.fullmatch(name)
        assert match is not None, name
        layer, part, kind = match.groups()
        expert = _EXPERT.fullmatch(part)
        if expert is not None:
            return f"blk.{layer}.ffn_{_EXPERT_PARTS[expert[2]]}_exps.{kind}", int(expert[1])
        return f"blk.{layer}.{_IN_LAYER[part]}.{kind}", None


def in_halves(tensor: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows of heads whose rotated pairs are neighbours, in the order in which pairs are half a head apart."""
    return tensor.unflatten(0, (heads, -1, 2)).transpose(1, 2).reshape(tensor.shape)


class _Keys:
    """The facts of a model in a GGUF file's metadata."""

    def __init__(self, file: GgufFile) -> None:
        self.file = file
        self.architecture = self.text("general.architecture")
        if self.architecture not in _ARCHITECTURES:
            known = ", ".join(_ARCHITECTURES)
            raise FileError(file.path, f"general.architecture is {self.architecture[:40]!r}, expected one of {known}")
        self.heads = self.whole("attention.head_count")
        self.kv_heads = self.whole("attention.head_count_kv", self.heads)

    def text(self, key: str) -> str:
        value = self.file.metadata.get(key)
        if not isinstance(value, str):
            raise FileError(self.file.path, f"has no text {key}")
        return value

    def optional(self, key: str) -> Any:
        return self.file.metadata.get(f"{self.architecture}.{key}")

    def whole(self, key: str, default: int | None = None) -> int:
        value = self.optional(key)
        value = default if value is None else value
        if type(value) is not int or not 0 < value < 2**31:
            raise FileError(self.file.path, f"{self.architecture}.{key} is not a whole number above 0")
        return value


def gguf_config(file: GgufFile) -> dict[str, Any]:
    """The keys of the Hugging Face configuration that a GGUF file's metadata amount to.

    Raises ``FileError`` for an architecture that the live engine does not run, and for metadata that lack something.
    """
    keys = _Keys(file)
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise FileError(file.path, "has no matrix 'token_embd.weight'")
    if "rope_freqs.weight" in file.tensors or keys.optional("rope.scaling.type") not in (None, "none"):
        raise FileError(file.path, "scales its rotary embedding, which is not supported in GGUF files")
    hidden = keys.whole("embedding_length")
    width = keys.whole("attention.key_length", hidden // keys.heads)
    if keys.optional("rope.dimension_count") not in (None, width):
        raise FileError(file.path, f"rotates a part of its heads, expected all {width} dimensions")
    config = {
        "architectures": [_ARCHITECTURES[keys.architecture]],
        "hidden_size": hidden,
        "num_hidden_layers": keys.whole("block_count"),
        "num_attention_heads": keys.heads,
        "num_key_value_heads": keys.kv_heads,
        "head_dim": width,
        "intermediate_size": keys.whole("feed_forward_length"),
        "max_position_embeddings": keys.whole("context_length"),
        "vocab_size": embedding.shape[0],
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "torch_dtype": "float32",
        "rms_norm_eps": keys.optional("attention.layer_norm_rms_epsilon"),
        "rope_theta": keys.optional("rope.freq_base"),
        "eos_token_id": file.metadata.get("tokenizer.ggml.eos_token_id"),
    }
    if keys.architecture == "qwen3moe":
        config["num_experts"] = keys.whole("expert_count")
        config["num_experts_per_tok"] = keys.whole("expert_used_count")
        config["moe_intermediate_size"] = keys.whole("expert_feed_forward_length")
        config["norm_topk_prob"] = True
    elif keys.optional("expert_count"):
        config["architectures"] = ["MixtralForCausalLM"]
        config["num_local_experts"] = keys.whole("expert_count")
        config["num_experts_per_tok"] = keys.whole("expert_used_count")
    return {key: value for key, value in config.items() if value is not None}
