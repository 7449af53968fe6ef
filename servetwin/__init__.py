"""servetwin: a twin of an LLM inference service.

>>> import servetwin
>>> result = servetwin.simulate("scenarios/quickstart.yaml")  # doctest: +SKIP
>>> result.summary["metrics"]["ttft_s"]["p99"]  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from servetwin.api import Comparison, Result, ServetwinError, compare, save, simulate

__all__ = ["Comparison", "Result", "ServetwinError", "compare", "save", "simulate"]


def __getattr__(name: str) -> Any:
    """Import the API when it is first used, not when the command line starts."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from servetwin import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
