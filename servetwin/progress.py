"""How far a command is, on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from rich.console import Console


@contextmanager
def progress_bar(
    text: str, shown: bool, total: int | None = None, **fields: Any
) -> Iterator[Callable[..., None] | None]:
    """A bar beside a text, which may show ``{task.completed}`` and ``{task.fields[NAME]}``.

    ``total`` is 0 where an update will tell it, None where nobody knows it. Yields what updates the bar, by
    ``advance``, ``completed``, ``total`` and the fields; None where it is not shown, or standard error is no terminal.
    """
    terminal = Console(stderr=True)
    if not (shown and terminal.is_terminal):
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    count, rest = (MofNCompleteColumn(), TimeRemainingColumn()) if total is not None else (None, None)
    columns = (BarColumn(), count, TextColumn(text), TimeElapsedColumn(), rest)
    kept: list[ProgressColumn] = [column for column in columns if column is not None]
    with Progress(*kept, console=terminal, transient=True) as bar:
        yield partial(bar.update, bar.add_task("", total=total, **fields))
