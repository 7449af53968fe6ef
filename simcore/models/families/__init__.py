"""Readers of configurations, one per family: classes that say which ``architectures`` they read.

A module of readers is imported when a configuration is looked for that those before it do not read, since all of them
take a fifth of the time in which a small run starts. A new one is listed here.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Literal

from simcore.models.families.base import DecoderConfig

_MODULES = (
    "llama",
    "qwen",
    "gpt_oss",
    "deepseek",
    "qwen_next",
    "gemma",
    "opt",
    "llama_like",
    "expert_families",
    "first_dense",
    "gpt",
    "glm",
    "cohere",
    "granite_moe",
    "lfm2",
    "llama4",
    "mamba_hybrids",
    "nemotron_h",
    "mimo",
    "minimax",
    "minimax_lightning",
    "kimi_linear",
    "nemotron_nas",
    "olmo",
)
"""Those of models that are run most come first."""

Named = Literal["architectures", "model_types"]
"""What a configuration may be looked for by."""


def readers() -> Iterator[type[DecoderConfig]]:
    """All readers."""
    for name in _MODULES:
        module = import_module(f"{__name__}.{name}")
        for found in vars(module).values():
            own = isinstance(found, type) and found.__module__ == module.__name__
            if own and issubclass(found, DecoderConfig) and "architectures" in vars(found):
                yield found


def reader_of(named: Named, name: str) -> type[DecoderConfig] | None:
    """The reader of an architecture, or of a model type; None if there is none."""
    return next((reader for reader in readers() if name in getattr(reader, named)), None)


def names_read(named: Named) -> list[str]:
    """All architectures, or all model types, that are read."""
    return sorted(name for reader in readers() for name in getattr(reader, named))
