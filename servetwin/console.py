"""Where tables are printed, so that no terminal and no pipe loses a figure."""

import sys
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Column, Table
from rich.text import Text

from simcore.core.errors import printable

_UNBOUNDED = 100_000
"""Columns of a line where output goes to a file or another program, which wants one line per row."""


_LONGEST_WORD = 24
"""Characters up to which a word is kept in one piece, however narrow the terminal."""


class _Console(Console):
    """Escapes what a terminal would take for a command: names in inputs may hold anything."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str("\n".join(map(printable, text.split("\n"))), **options)


def say(text: str) -> None:
    """Print lines on standard output, with whatever no text has escaped."""
    typer.echo("\n".join(map(printable, text.split("\n"))))


def console() -> Console:
    """Standard output: as wide as the terminal, or as whatever is printed where it is none."""
    return _Console(highlight=False, width=None if sys.stdout.isatty() else _UNBOUNDED)


def plain_table(first: str, *others: str, justify: JustifyMethod = "right", title: str | None = None) -> Table:
    """A table without frames: the first column left-aligned, the others as told; figures are not wrapped."""
    keep = justify == "right"
    columns = [Column(first, no_wrap=True), *(Column(name, justify=justify, no_wrap=keep) for name in others)]
    return Table(*columns, box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")


def print_table(table: Table, to: Console) -> None:
    """Print a table in full: text is wrapped to fit the terminal; what cannot be wrapped runs over its edge."""
    unbounded = to.options.update(width=_UNBOUNDED)
    for column in table.columns:
        sizes = [to.measure(cell, options=unbounded) for cell in (column.header, *column.cells)]
        if column.no_wrap:
            column.min_width = max(size.maximum for size in sizes)
        else:
            column.min_width = min(max(size.minimum for size in sizes), _LONGEST_WORD)
            column.overflow = "fold"
    needed = to.measure(table, options=unbounded).minimum
    if needed > to.width:
        table.width = needed
    to.print(table, crop=False)
