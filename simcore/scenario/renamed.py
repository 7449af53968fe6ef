"""Keys of scenarios that have another name now."""

from collections.abc import Mapping
from typing import Any

from simcore.core.errors import InputError, Phrase

RENAMED = {
    "host.overlapped": "host.async_scheduling",
    "host.graph_tokens": "host.max_cudagraph_tokens",
    "scheduler.batching.data_groups": "scheduler.batching.data_parallel_ranks",
}
"""Dotted paths as they once were, each with the one that took its place."""


def refuse_old_names(document: Mapping[str, Any]) -> None:
    """Raise ``InputError`` for the first key of ``RENAMED`` that the document has, with the name to use instead."""
    for old, new in RENAMED.items():
        *sections, key = old.split(".")
        place: Any = document
        for section in sections:
            place = place.get(section) if isinstance(place, Mapping) else None
        if isinstance(place, Mapping) and key in place:
            raise InputError(old, Phrase("an old name"), new)
