import pytest
import torch

from live.model.config import DecoderConfig, Llama3Scaling, read_decoder_config
from live.model.rotary import rotary_frequencies
from simcore.core.errors import InputError

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 8, "vocab_size": 10, "max_position_embeddings": 64, "torch_dtype": "float32",
    "rms_norm_eps": 1e-5, "eos_token_id": [1, 2],
}  # fmt: skip
SCALED = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip


def read(**changed: object) -> DecoderConfig:
    return read_decoder_config(LLAMA | changed, "tiny")


def test_older_and_newer_ways_to_state_a_rotation_are_the_same() -> None:
    old = read(rope_theta=500_000.0, rope_scaling=SCALED)
    new = read(rope_parameters={**SCALED, "rope_theta": 500_000.0})
    assert old == new
    assert old.rope_scaling == Llama3Scaling(8.0, 1.0, 4.0, 8192)
    assert read().rope_theta == 10_000.0
    assert read(rope_scaling={"type": "linear", "factor": 2.0}).rope_scaling == 2.0
    assert read().end_tokens == (1, 2)


def test_llama_3_1_keeps_short_wavelengths_and_stretches_long_ones() -> None:
    plain = rotary_frequencies(read(rope_theta=500_000.0, head_dim=128))
    scaled = rotary_frequencies(read(rope_theta=500_000.0, head_dim=128, rope_scaling=SCALED))
    wavelengths = 2 * torch.pi / plain
    assert torch.equal(scaled[wavelengths < 8192 / 4], plain[wavelengths < 8192 / 4])
    torch.testing.assert_close(scaled[wavelengths > 8192], plain[wavelengths > 8192] / 8)
    assert (scaled.diff() < 0).all()


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"rms_norm_eps": None}, "rms_norm_eps is"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps is nan"),
        ({"rope_theta": -1.0}, "rope_theta is -1.0"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "yarn"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"head_dim": 7}, "head_dim is 7, expected an even number"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantization_config is"),
        ({"architectures": ["OPTForCausalLM"]}, "is missing"),
        ({"architectures": ["Phi3ForCausalLM"]}, "model_type is 'phi3', expected one of llama, mistral"),
        (
            {"architectures": ["Qwen3ForCausalLM"], "head_dim": 16, "num_key_value_heads": 2},
            "rope_theta is empty, expected a number above 0",
        ),
    ],
)
def test_what_cannot_be_run_is_refused(changed: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read(**changed)
