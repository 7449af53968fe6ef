"""What a fault did."""

from dataclasses import dataclass


@dataclass(slots=True)
class FaultRecord:
    """One fault: what, where, from when to when, and the requests that it interrupted.

    ``until_ns`` is None where it lasts to the end of the run; ``replica`` is None where no single one is struck. A
    fault that finds its replica down already does nothing (``void``).
    """

    name: str
    at_ns: int
    until_ns: int | None
    replica: int | None = None
    interrupted: int = 0
    given_up: int = 0
    void: bool = False
