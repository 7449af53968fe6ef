"""Small pieces of HTML; whatever comes from a scenario or a run passes through ``text``."""

import html
from collections.abc import Callable, Iterable
from typing import Any

from simcore.core.errors import printable, shortened

_LONGEST_NAME = 40
NO_DATA = '<span class="none">– <small>no data</small></span>'


def text(value: object) -> str:
    """A value as text that a browser shows as it stands; bytes of a file's name that are no text become "?"."""
    lines = str(value).encode("utf-8", "replace").decode("utf-8").split("\n")
    return html.escape("\n".join(map(printable, lines)))


def name_text(name: str) -> str:
    """A name that a file gives, for a legend: as text, of which no more than the beginning where it is long."""
    return text(shortened(name, _LONGEST_NAME))


def figure_of(value: float | None, wording: Callable[[float], str]) -> str:
    """A number in its wording, or a dash that says why there is none."""
    return NO_DATA if value is None else text(wording(value))


def interval(bounds: list[float] | None, wording: Callable[[float], str]) -> str:
    """An interval in small print, a unit that both ends share named once; nothing where there is none."""
    if bounds is None:
        return ""
    low, high = (wording(bound) for bound in bounds)
    number, _, unit = low.partition(" ")
    if unit and high.endswith(f" {unit}"):
        low = number
    return f"<small>{text(low)} … {text(high)}</small>"


def band(figures: dict[str, Any], key: str, wording: Callable[[float], str]) -> str:
    """The uncertainty band of a figure in small print, nothing where there is none."""
    bounds = (figures.get("band") or {}).get(key)
    return interval(bounds, wording).replace("<small>", "<small>band ", 1)


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and values; the values are HTML."""
    body = "".join(f'<tr><th scope="row">{text(name)}</th><td>{value}</td></tr>' for name, value in rows)
    return f'<table class="facts"><tbody>{body}</tbody></table>'


def box(kind: str, title: str, messages: Iterable[str]) -> str:
    """A coloured box with a list of messages; nothing if there is none."""
    items = "".join(f"<li>{text(message)}</li>" for message in messages)
    return f'<aside class="box {kind}"><strong>{text(title)}</strong><ul>{items}</ul></aside>' if items else ""


def section(title: str, body: str) -> str:
    """A part of the page under its own heading."""
    return f"<section><h2>{text(title)}</h2>{body}</section>"
