"""A table of a fidelity report, as plain values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """A share or a relative error; ``signed`` ones are shown with their sign."""

    value: float
    signed: bool = False


Cell = str | int | float | Share | None


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, column names, and rows of as many cells; ``note`` is a sentence to go with it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
