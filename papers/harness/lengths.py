"""Lengths of requests that several papers use, with their sources in ``lengths.yaml``."""

from functools import cache
from pathlib import Path
from typing import Any

from simcore.core.yaml_text import read_yaml

KINDS = ("prompt_tokens", "output_tokens")


@cache
def _stated() -> dict[str, dict[str, Any]]:
    stated: dict[str, dict[str, Any]] = read_yaml(Path(__file__).with_suffix(".yaml"))
    return stated


def laws(name: str) -> dict[str, Any]:
    """The parts of a workload that draw prompts and outputs, apart, from these quantiles."""
    return {kind: {"name": "quantiles", "tokens": _stated()[name][kind]} for kind in KINDS}


def quantiles(name: str, kind: str) -> tuple[list[float], list[float]]:
    """Shares from 0 to 1, and the length at each."""
    points = {"min": 0.0, "max": 1.0} | {f"p{percent}": percent / 100 for percent in range(1, 100)}
    tokens = _stated()[name][kind]
    return [points[point] for point in tokens], list(tokens.values())
