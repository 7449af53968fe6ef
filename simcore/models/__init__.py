"""Model facts: a transformer's shape from a name or a Hugging Face ``config.json``, and the sizes that follow from it.

>>> spec = load_model("llama-3.1-8b")
>>> count_parameters(spec).total, weight_bytes(spec)
(8030261248, 16060522496)
"""

from os import sep
from pathlib import Path

from simcore.core.errors import FileError, UnknownNameError, nearest_name
from simcore.core.files import opening
from simcore.models.catalogue import Preset, Published, load_preset, load_preset_spec, preset_names
from simcore.models.config_file import load_config_file, read_config
from simcore.models.recurrent import LightningAttention, LinearAttention, Recurrent, ShortConvolution, StateSpace
from simcore.models.spec import (
    Attention,
    CachedAttention,
    DenseFeedForward,
    FeedForward,
    LatentAttention,
    LayerGroup,
    MixtureOfExperts,
    ModelSpec,
    heads_per_rank,
)
from simcore.models.weights import (
    ParameterCount,
    count_parameters,
    input_embedding_parameters,
    rank_weight_bytes,
    weight_bytes,
)

__all__ = [
    "Attention",
    "CachedAttention",
    "DenseFeedForward",
    "FeedForward",
    "LatentAttention",
    "LayerGroup",
    "LightningAttention",
    "LinearAttention",
    "MixtureOfExperts",
    "ModelSpec",
    "ParameterCount",
    "Preset",
    "Published",
    "Recurrent",
    "ShortConvolution",
    "StateSpace",
    "count_parameters",
    "heads_per_rank",
    "input_embedding_parameters",
    "load_model",
    "load_preset",
    "preset_names",
    "rank_weight_bytes",
    "read_config",
    "weight_bytes",
]


def load_model(name_or_path: str) -> ModelSpec:
    """The facts of a model: one known by name, or one described by a ``config.json`` (its path, or its folder's).

    Raises ``UnknownNameError`` (field "model") for a name that is neither, ``FileError`` for a path to nothing or to
    no JSON, ``InputError`` for a configuration that cannot be read.
    """
    if name_or_path in preset_names():
        return load_preset_spec(name_or_path)
    path = Path(name_or_path)
    with opening(path):
        exists = path.exists()
    if exists or path.suffix == ".json":
        return load_config_file(path)
    if sep in name_or_path:
        nearest = nearest_name(path.name, preset_names())
        hint = f"; the model nearest to it that is known by name is {nearest!r}" if nearest else ""
        raise FileError(path, f"no such file or folder{hint}")
    raise UnknownNameError("model", name_or_path, preset_names())
