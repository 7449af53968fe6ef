"""Where tables are printed."""

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Column, Table

_PIPED_WIDTH = 120
"""Columns of a line where output goes to a file or another program."""


def console() -> Console:
    """Standard output, as wide as the terminal."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=_PIPED_WIDTH)


def plain_table(first: str, *others: str, justify: JustifyMethod = "right") -> Table:
    """A table without frames: the first column left-aligned, the others as told; figures are not wrapped."""
    keep = justify == "right"
    columns = [Column(first, no_wrap=True), *(Column(name, justify=justify, no_wrap=keep) for name in others)]
    return Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
