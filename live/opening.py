"""A model's configuration and weights from what a user names: a checkpoint folder, a GGUF file, or a known model."""

from dataclasses import dataclass
from pathlib import Path

import torch

from live.model.config import DecoderConfig, read_decoder_config
from live.weights.folder import SafetensorsFolder
from live.weights.gguf_file import GgufFile
from live.weights.gguf_weights import GgufWeights, gguf_config
from live.weights.source import RandomWeights, WeightSource
from simcore.core.errors import FileError, InputError
from simcore.core.files import opening, read_json


@dataclass(frozen=True, slots=True)
class OpenModel:
    """What was found: the configuration, where the weights come from, and the GGUF file if it is one."""

    config: DecoderConfig
    source: WeightSource
    gguf: GgufFile | None = None


def open_model(path: Path) -> OpenModel:
    """The model in a checkpoint folder (config.json and safetensors files) or in a GGUF file.

    Headers are checked in full; no weight is read yet. Raises ``FileError`` or ``InputError``.
    """
    with opening(path):
        is_folder = path.is_dir()
    if is_folder:
        return OpenModel(_config(path / "config.json"), SafetensorsFolder(path))
    file = GgufFile(path)
    try:
        config = read_decoder_config(gguf_config(file), path.stem)
    except InputError as error:
        raise FileError(path, f"describes a model that cannot be ({str(error).rstrip('.')})") from None
    return OpenModel(config, GgufWeights(file), file)


def random_model(path: Path, seed: int, dtype: torch.dtype, device: torch.device) -> OpenModel:
    """The model of a ``config.json`` (or of a folder that has one) with weights from a seed."""
    with opening(path):
        is_folder = path.is_dir()
    return OpenModel(_config(path / "config.json" if is_folder else path), RandomWeights(seed, device, dtype))


def _config(file: Path) -> DecoderConfig:
    content = read_json(file)
    if not isinstance(content, dict):
        raise FileError(file, "expected a JSON object of configuration keys")
    name = file.resolve().parent.name if file.name == "config.json" else file.stem
    return read_decoder_config(content, name, source=f"{file}: ")
