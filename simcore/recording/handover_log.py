"""Which requests went from one replica to another, and when."""

from dataclasses import dataclass, field
from typing import NamedTuple


class HandoverRow(NamedTuple):
    """One request: its prompt was computed at ``prefilled_ns``, blocks were set aside for it at ``room_ns``.

    It could decode from ``landed_ns`` on. ``size_bytes`` were sent, in all ``attempts``; ``lost`` is set where the last
    was lost too.
    """

    number: int
    source: int
    target: int
    prefilled_ns: int
    room_ns: int
    landed_ns: int
    size_bytes: int
    attempts: int
    lost: bool


@dataclass(slots=True)
class HandoverLog:
    """Rows in order of landing."""

    rows: list[HandoverRow] = field(default_factory=list)
