"""The table of metrics by name and by use: what the summary, the terminal, reports, comparisons and documents go by."""

from collections.abc import Iterator
from itertools import groupby

from simcore.metrics.definitions import METRICS
from simcore.metrics.metric import Figure, Latency, Rate

_BY_NAME: dict[str, Latency | Figure] = {metric.name: metric for metric in METRICS}


def register(metric: Latency | Figure) -> None:
    """Add a metric of one's own; raises ``ValueError`` if there is one of this name or at this place."""
    if metric.name in _BY_NAME or metric.place in {other.place for other in _BY_NAME.values()}:
        raise ValueError(f"there is a metric called {metric.name!r} or at {metric.place!r} already")
    _BY_NAME[metric.name] = metric


def latencies() -> tuple[Latency, ...]:
    """The times that every request has."""
    return tuple(metric for metric in _BY_NAME.values() if isinstance(metric, Latency))


def latency(name: str) -> Latency:
    """The latency of this name."""
    found = _BY_NAME[name]
    assert isinstance(found, Latency)
    return found


def definition(name: str) -> str:
    """What the metric of this name is, in a sentence."""
    return _BY_NAME[name].definition


def figures() -> tuple[Figure, ...]:
    """The single numbers of a run."""
    return tuple(metric for metric in _BY_NAME.values() if isinstance(metric, Figure))


def rates() -> tuple[Rate, ...]:
    """The figures that count what comes per second."""
    return tuple(metric for metric in _BY_NAME.values() if isinstance(metric, Rate))


def lines() -> Iterator[tuple[str, list[Figure]]]:
    """The lines in which the terminal and the report show figures, each with its figures."""
    shown = [figure for figure in figures() if figure.line]
    order = list(dict.fromkeys(figure.line for figure in shown))
    for line, group in groupby(sorted(shown, key=lambda figure: order.index(figure.line)), lambda figure: figure.line):
        yield line, list(group)
