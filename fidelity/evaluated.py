"""The cases of one source after they were simulated."""

from dataclasses import dataclass

from fidelity.case import Outcome, Refusal


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The cases of one kind of source, in order; every row read is among ``outcomes`` or ``refusals``."""

    outcomes: tuple[Outcome, ...]
    refusals: tuple[Refusal, ...]
