"""Limits as an option states them: ``ttft_p99=0.5,tpot_p99=0.05``, in seconds."""

from simcore.core.errors import InputError, UnknownNameError
from simcore.metrics.definitions import PERCENTILES

_METRICS = ("ttft", "tpot", "e2e")


def objectives(text: str) -> dict[str, dict[str, float]]:
    """The limits by metric and percentile, as the ``slo`` of a scenario has them; raises ``InputError``."""
    found: dict[str, dict[str, float]] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise InputError("--slo", part, "NAME=SECONDS, such as ttft_p99=0.5")
        metric, _, percentile = name.partition("_")
        if metric not in _METRICS or percentile not in PERCENTILES:
            known = [f"{metric}_{percentile}" for metric in _METRICS for percentile in PERCENTILES]
            raise UnknownNameError("--slo", name, known)
        try:
            limit_s = float(value)
        except ValueError:
            raise InputError(f"--slo {name}", value, "a number of seconds") from None
        if not 0 < limit_s < float("inf"):
            raise InputError(f"--slo {name}", value, "seconds, more than 0")
        found.setdefault(f"{metric}_s", {})[percentile] = limit_s
    return found
