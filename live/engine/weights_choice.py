"""Which weights a model runs with, by what a user says."""

from pathlib import Path

import torch

from live.engine.setup import DTYPES, LiveSettings
from live.known_models import smollm2_file
from live.model.config import read_decoder_config
from live.opening import OpenModel, open_model, random_model
from live.text.tokenizer import TextTokenizer, tokenizer_of_folder, tokenizer_of_gguf
from live.weights.source import RandomWeights
from simcore.core.errors import InputError
from simcore.models import load_preset, preset_names

SMOLLM2 = "smollm2-135m"
RANDOM = "random"
_NOT_IN_PRESETS = {"rms_norm_eps": 1e-5, "rope_theta": 1e4}
"""What presets leave out; of random weights it changes no time."""
_EXPECTED = f"a checkpoint folder, a .gguf file or {SMOLLM2}; --weights random runs any configuration on random weights"


def choose_weights(model: str, weights: str | None, settings: LiveSettings, seed: int = 0) -> OpenModel:
    """The weights of a model: where it is a folder or a file its own, else those that ``weights`` names.

    ``weights`` are a path, or "random" for random ones from ``seed``, of whatever shape ``model`` has. Raises
    ``InputError`` where there are none, and ``FileError`` for files that are broken.
    """
    if weights == RANDOM:
        return _random(model, settings, seed)
    named = model if weights is None else weights
    if named == SMOLLM2:
        return open_model(smollm2_file())
    path = Path(named)
    if weights is None and (model in preset_names() or path.suffix == ".json"):
        raise InputError("model", model, _EXPECTED)
    return open_model(path)


def tokenizer_of(model: OpenModel, named: str) -> TextTokenizer | None:
    """The tokenizer that came with a model's weights, None where it has none."""
    if model.gguf is not None:
        return tokenizer_of_gguf(model.gguf)
    folder = Path(named)
    return tokenizer_of_folder(folder, model.config.end_tokens) if (folder / "tokenizer.json").is_file() else None


def _random(model: str, settings: LiveSettings, seed: int) -> OpenModel:
    dtype, device = DTYPES[settings.number_format], torch.device(settings.device)
    if model not in preset_names():
        return random_model(Path(model), seed, dtype, device)
    config = read_decoder_config({**_NOT_IN_PRESETS, **load_preset(model).config}, model)
    return OpenModel(config, RandomWeights(seed, device, dtype))
