"""The published configurations that tests read: one file each in ``published``."""

import json
from pathlib import Path

from simcore.models import ModelSpec, read_config

FOLDER = Path(__file__).parent / "published"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def entry(name: str) -> dict:
    """All that the file says."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def published_model(name: str) -> ModelSpec:
    """The model that its configuration describes."""
    return read_config(entry(name)["config"], name)
