"""Counts the parameters of published configurations with the Transformers library, beside which ours are tested.

    python -m tools.count_published_models tests/simcore/models/published

writes what the library's own modules hold, made without memory for their numbers, as ``transformers`` into each file
of the folder: version and parameters, or null where the library has no such model. Needs torch and transformers.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

UNKNOWN_TO_CLASSES = (
    "architectures",
    "torch_dtype",
    "dtype",
    "auto_map",
    "quantization_config",
    "transformers_version",
)
"""Keys that are no arguments of a configuration class, or that load code or quantise."""


def main(folder: Path) -> None:
    """Count every file of a folder."""
    import transformers

    for path in sorted(folder.glob("*.json")):
        entry = json.loads(path.read_text(encoding="utf-8"))
        parameters = counted(entry["config"])
        entry["transformers"] = (
            None if parameters is None else {"version": transformers.__version__, "parameters": parameters}
        )
        path.write_text(json.dumps(entry, indent=1) + "\n", encoding="utf-8")
        print(path.stem, parameters)


def counted(config: Mapping[str, Any]) -> int | None:
    """Parameters of the language model that a configuration describes, None for one that the library does not know."""
    import torch
    from transformers import CONFIG_MAPPING, AutoConfig, AutoModelForCausalLM

    text = config.get("text_config", config)
    keys = {key: value for key, value in text.items() if key not in UNKNOWN_TO_CLASSES}
    keys |= {key: config[key] for key in ("tie_word_embeddings",) if key in config}
    if keys["model_type"] not in CONFIG_MAPPING:
        return None
    if "tie_embedding" in keys:  # LFM2's name for it
        keys["tie_word_embeddings"] = keys.pop("tie_embedding")
    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**keys))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        print(f"{keys['model_type']}: {error}", file=sys.stderr)
        return None
    model.tie_weights()
    return sum(parameter.numel() for parameter in model.parameters())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
