"""Small models of every family, made by transformers with random weights and saved as their users would."""

from pathlib import Path

import torch
import transformers

SHAPE = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 48}
FAMILIES = {
    "llama": ("LlamaConfig", {"rms_norm_eps": 1e-5}),
    "llama-biased": ("LlamaConfig", {"attention_bias": True, "mlp_bias": True}),
    "llama-3.1": (
        "LlamaConfig",
        {
            "rope_parameters": {
                "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 32,
            },
        },
    ),
    "llama-linear": ("LlamaConfig", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}}),
    "mistral": ("MistralConfig", {"sliding_window": 7}),
    "qwen2": ("Qwen2Config", {"tie_word_embeddings": True}),
    "qwen2-windowed": ("Qwen2Config", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}),
    "qwen3": ("Qwen3Config", {}),
    "mixtral": ("MixtralConfig", {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None}),
    "qwen3-moe": ("Qwen3MoeConfig", {**EXPERTS, "num_experts": 8, "norm_topk_prob": True, "mlp_only_layers": [1]}),
    "qwen3-moe-unnormed": ("Qwen3MoeConfig", {**EXPERTS, "num_experts": 8, "norm_topk_prob": False}),
}  # fmt: skip


def config_of(name: str, **more: object) -> transformers.PretrainedConfig:
    """The configuration of a family's small model, with ``more`` changed."""
    kind, particulars = FAMILIES[name]
    settings = {**SHAPE, **particulars, **more, "initializer_range": 0.3, "dtype": "float32"}
    config: transformers.PretrainedConfig = getattr(transformers, kind)(**settings)
    return config


def save_config(name: str, folder: Path, **more: object) -> None:
    """The configuration alone."""
    config = config_of(name, **more)
    config.architectures = [FAMILIES[name][0].replace("Config", "ForCausalLM")]
    config.save_pretrained(folder)


def save(name: str, folder: Path, shard_size: str = "5GB", **more: object) -> torch.nn.Module:
    """The model, saved to a folder."""
    torch.manual_seed(11)
    config = config_of(name, **more)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():  # norms and biases of one and zero would hide that they are left out
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder, max_shard_size=shard_size)
    return model


def logits(model: torch.nn.Module, tokens: list[int]) -> torch.Tensor:
    """Of each token of a sequence, by transformers."""
    with torch.inference_mode():
        result: torch.Tensor = model(torch.tensor([tokens])).logits[0]
    return result
