"""Keys of configurations that change neither sizes nor work: what a reader may leave unread without a word."""

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

HARMLESS_KEYS: frozenset[str] = frozenset(
    key
    for keys in json.loads((resources.files(__package__) / "harmless_keys.json").read_bytes()).values()
    for key in keys
)
"""By what they are for: training, sampling, positions, scores of routers, and what is done number by number."""
_OF_VISION = ("vision_config", "visual", "vision_tower", "mm_vision_tower", "image_token_id", "image_token_index")


def shows_images(config: Mapping[str, Any]) -> bool:
    """Whether a configuration has a part that reads images."""
    return any(config.get(key) for key in _OF_VISION)
