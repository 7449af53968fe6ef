"""servetwin: a twin of an LLM inference service.

>>> import servetwin
>>> result = servetwin.simulate("scenarios/quickstart.yaml")  # doctest: +SKIP
>>> result.summary["metrics"]["ttft_s"]["p99"]  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiments.comparison import Comparison
    from servetwin.api import save, simulate
    from servetwin.comparing import compare
    from simcore.core.errors import ServetwinError
    from simcore.core.result import Result

__all__ = ["Comparison", "Result", "ServetwinError", "compare", "save", "simulate"]

_HOMES = {
    "Comparison": "experiments.comparison",
    "Result": "simcore.core.result",
    "ServetwinError": "simcore.core.errors",
    "compare": "servetwin.comparing",
    "save": "servetwin.api",
    "simulate": "servetwin.api",
}


def __getattr__(name: str) -> Any:
    """Import a part of the API when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
