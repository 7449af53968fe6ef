"""The real engine: models, paged keys and values in tensors, sampling and text, on a CPU or a GPU."""

from typing import Any


def __getattr__(name: str) -> Any:
    """``live.Engine``, which is imported when it is asked for, as torch comes with it."""
    if name != "Engine":
        raise AttributeError(f"module 'live' has no attribute {name!r}")
    from live.engine.engine import Engine

    return Engine
