"""Which running requests went from one replica to another, and which did not after all."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple


class MigrationRow(NamedTuple):
    """One request: copying began at ``start_ns``, it stopped at ``stop_ns``, and could go on from ``landed_ns`` on.

    ``size_bytes`` were sent in so many ``copies``.
    """

    number: int
    source: int
    target: int
    start_ns: int
    stop_ns: int
    landed_ns: int
    size_bytes: int
    copies: int


@dataclass(slots=True)
class MigrationLog:
    """Rows in order of landing, and how many moves were called off, by reason."""

    rows: list[MigrationRow] = field(default_factory=list)
    called_off: Counter[str] = field(default_factory=Counter)
