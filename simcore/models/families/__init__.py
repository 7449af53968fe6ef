"""Readers of configurations, one per family; a new family is one reader, listed here."""

from simcore.models.families.base import DecoderConfig
from simcore.models.families.cohere import Cohere2Config, CohereConfig
from simcore.models.families.deepseek import DeepseekV2Config, DeepseekV3Config, Glm4MoeLiteConfig, SparseLatentConfig
from simcore.models.families.expert_families import (
    ArcticConfig,
    DbrxConfig,
    HunyuanMoeConfig,
    PhiMoeConfig,
    Qwen2MoeConfig,
)
from simcore.models.families.first_dense import (
    BailingMoeConfig,
    DeepseekMoeConfig,
    Dots1Config,
    Ernie45MoeConfig,
    Glm4MoeConfig,
)
from simcore.models.families.gemma import Gemma2Config, Gemma3Config, Gemma4Config, GemmaConfig
from simcore.models.families.glm import ChatGlmConfig, Glm4Config, GlmConfig
from simcore.models.families.gpt import (
    BloomConfig,
    FalconConfig,
    GPT2Config,
    GPTBigCodeConfig,
    GPTJConfig,
    GPTNeoXConfig,
    MptConfig,
    PhiConfig,
    Starcoder2Config,
)
from simcore.models.families.gpt_oss import GptOssConfig
from simcore.models.families.granite_moe import GraniteMoeConfig
from simcore.models.families.kimi_linear import KimiLinearConfig
from simcore.models.families.lfm2 import Lfm2Config, Lfm2MoeConfig
from simcore.models.families.llama import LlamaConfig, MinistralConfig, MistralConfig, MixtralConfig, Phi3Config
from simcore.models.families.llama4 import Llama4Config
from simcore.models.families.llama_like import (
    ApertusConfig,
    ArceeConfig,
    BaichuanConfig,
    Ernie45Config,
    Exaone4Config,
    ExaoneConfig,
    GraniteConfig,
    HunyuanDenseConfig,
    InternLMConfig,
    MiniCPMConfig,
    NemotronConfig,
    Qwen1Config,
    SeedOssConfig,
    SmolLM3Config,
    StableLmConfig,
)
from simcore.models.families.mamba_hybrids import (
    BambaConfig,
    FalconH1Config,
    GraniteHybridConfig,
    JambaConfig,
)
from simcore.models.families.mimo import MiMoConfig, MiMoV2FlashConfig
from simcore.models.families.minimax import MiniMaxM2Config
from simcore.models.families.minimax_lightning import MiniMaxLightningConfig
from simcore.models.families.nemotron_h import NemotronHConfig
from simcore.models.families.nemotron_nas import NemotronNasConfig
from simcore.models.families.olmo import Olmo2Config, Olmo3Config, OlmoConfig, OlmoeConfig
from simcore.models.families.opt import OPTConfig
from simcore.models.families.qwen import Qwen2Config, Qwen3Config, Qwen3MoeConfig
from simcore.models.families.qwen_next import Qwen3NextConfig, Qwen35Config, Qwen35MoeConfig

__all__ = ["FAMILIES", "DecoderConfig"]

FAMILIES: tuple[type[DecoderConfig], ...] = (
    CohereConfig,
    Cohere2Config,
    DeepseekV2Config,
    DeepseekV3Config,
    Glm4MoeLiteConfig,
    SparseLatentConfig,
    ArcticConfig,
    BailingMoeConfig,
    DbrxConfig,
    DeepseekMoeConfig,
    Dots1Config,
    Ernie45MoeConfig,
    Glm4MoeConfig,
    HunyuanMoeConfig,
    PhiMoeConfig,
    Qwen2MoeConfig,
    GemmaConfig,
    Gemma2Config,
    Gemma3Config,
    Gemma4Config,
    ChatGlmConfig,
    Glm4Config,
    GlmConfig,
    BloomConfig,
    FalconConfig,
    GPT2Config,
    GPTBigCodeConfig,
    GPTJConfig,
    GPTNeoXConfig,
    MptConfig,
    PhiConfig,
    Starcoder2Config,
    GptOssConfig,
    GraniteMoeConfig,
    Lfm2Config,
    Lfm2MoeConfig,
    LlamaConfig,
    MinistralConfig,
    MistralConfig,
    MixtralConfig,
    Phi3Config,
    Llama4Config,
    ApertusConfig,
    ArceeConfig,
    BaichuanConfig,
    Ernie45Config,
    Exaone4Config,
    ExaoneConfig,
    GraniteConfig,
    HunyuanDenseConfig,
    InternLMConfig,
    MiniCPMConfig,
    NemotronConfig,
    Qwen1Config,
    SeedOssConfig,
    SmolLM3Config,
    StableLmConfig,
    BambaConfig,
    FalconH1Config,
    GraniteHybridConfig,
    JambaConfig,
    NemotronHConfig,
    MiMoConfig,
    MiMoV2FlashConfig,
    MiniMaxM2Config,
    MiniMaxLightningConfig,
    KimiLinearConfig,
    NemotronNasConfig,
    OlmoConfig,
    Olmo2Config,
    Olmo3Config,
    OlmoeConfig,
    OPTConfig,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
    Qwen3NextConfig,
    Qwen35Config,
    Qwen35MoeConfig,
)
