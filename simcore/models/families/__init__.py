"""Readers of configurations, one per family; a new family is one reader, listed here."""

from simcore.models.families.base import DecoderConfig
from simcore.models.families.deepseek import DeepseekV2Config, DeepseekV3Config
from simcore.models.families.gemma import Gemma2Config, Gemma3Config
from simcore.models.families.gpt_oss import GptOssConfig
from simcore.models.families.llama import LlamaConfig, MistralConfig, MixtralConfig, Phi3Config
from simcore.models.families.minimax import MiniMaxM2Config
from simcore.models.families.opt import OPTConfig
from simcore.models.families.qwen import Qwen2Config, Qwen3Config, Qwen3MoeConfig
from simcore.models.families.qwen_next import Qwen3NextConfig, Qwen35Config, Qwen35MoeConfig

__all__ = ["FAMILIES", "DecoderConfig"]

FAMILIES: tuple[type[DecoderConfig], ...] = (
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
    Qwen3NextConfig,
    Qwen35Config,
    Qwen35MoeConfig,
    Gemma2Config,
    Gemma3Config,
    Phi3Config,
    OPTConfig,
    GptOssConfig,
    DeepseekV2Config,
    DeepseekV3Config,
    MiniMaxM2Config,
)
