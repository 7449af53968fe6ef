"""What a scenario from outside may name: models, accelerators and profiles by name, and traces that the dashboard has.

Whoever sends a link or a file must not make the dashboard read other files, or take hours to check a scenario.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from simcore.core.errors import InputError, UnknownNameError
from simcore.cost.calibrated import available_profiles
from simcore.cost.profile_choice import AUTO, ROOFLINE
from simcore.hardware import accelerator_names
from simcore.models import preset_names

MOST_REQUESTS = 100_000
"""Of a synthetic workload; ``servetwin run`` takes more."""
_FILE_KEYS = ("trace", "file")
_RATES = ("rate_per_s", "on_rate_per_s")


def trusted(document: Mapping[str, Any], traces: Mapping[str, Path]) -> dict[str, Any]:
    """The scenario with the names of traces replaced by their paths.

    Raises ``InputError`` for a file that is not among ``traces``, for any other file, and for too many requests.
    """
    _check_name("model", document.get("model"), preset_names())
    cluster, pricing = document.get("cluster"), document.get("pricing")
    accelerator = cluster.get("accelerator") if isinstance(cluster, Mapping) else None
    _check_name("cluster.accelerator", accelerator, accelerator_names())
    if isinstance(pricing, Mapping):
        shipped = available_profiles(accelerator) if isinstance(accelerator, str) else ()
        _check_name("pricing.profile", pricing.get("profile"), (AUTO, ROOFLINE, *shipped))
    if "workload" not in document:
        return dict(document)
    return {**document, "workload": _with_paths(document["workload"], "workload", traces)}


def _check_name(field: str, value: Any, known: tuple[str, ...]) -> None:
    if isinstance(value, str) and value not in known:
        raise UnknownNameError(field, value, known)


def _with_paths(section: Any, field: str, traces: Mapping[str, Path]) -> Any:
    if isinstance(section, list):
        return [_with_paths(item, f"{field}.{place}", traces) for place, item in enumerate(section)]
    if not isinstance(section, Mapping):
        return section
    _check_amount(section, field)
    found = {}
    for key, value in section.items():
        if key in _FILE_KEYS and isinstance(value, str):
            _check_name(f"{field}.{key}", value, tuple(traces))
            found[key] = str(traces[value])
        else:
            found[key] = _with_paths(value, f"{field}.{key}", traces)
    return found


def _check_amount(section: Mapping[str, Any], field: str) -> None:
    """Refuse more requests than a page can check while one waits; what is no number is for the schema to refuse."""
    words = f"at most {MOST_REQUESTS:,} in the dashboard, while servetwin run takes more"
    requests, samples, lasts_s = (section.get(key) for key in ("requests", "samples", "duration_s"))
    if _is_number(requests) and requests * (samples if _is_number(samples) else 1) > MOST_REQUESTS:
        raise InputError(f"{field}.requests", requests, words)
    arrivals = section.get("arrivals")
    rates = [arrivals.get(key) for key in _RATES] if isinstance(arrivals, Mapping) else []
    for rate in filter(_is_number, rates):
        if _is_number(lasts_s) and lasts_s * rate > MOST_REQUESTS:
            raise InputError(f"{field}.duration_s", lasts_s, f"requests of {words}")


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
