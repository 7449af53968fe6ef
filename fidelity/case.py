"""A measured run beside the scenario that repeats it, or the reason why none can."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fidelity.host_shares import HostShares


@dataclass(frozen=True, slots=True)
class Case:
    """One measured run that can be simulated.

    ``labels`` say what it was, for grouping: model, engine, accelerator, concurrency and so on. ``document`` is the
    scenario. ``measured`` gives figures by key (see ``fidelity.figures``), in seconds or per second.
    ``plausible`` are scenarios that may be the true one just as well, where nobody states how the run was set up: bands
    are drawn over them too.
    """

    name: str
    labels: Mapping[str, str]
    document: dict[str, Any]
    measured: Mapping[str, float]
    plausible: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """One measured run that cannot be simulated, and why, in words that are the same for all of its kind."""

    name: str
    labels: Mapping[str, str]
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case came to: ``simulated`` by the keys of ``case.measured``, None where the run has no such figure.

    ``conditions`` describe the simulated run (see ``fidelity.figures.CONDITIONS``). ``bands`` hold the
    uncertainty band of a figure where the run states one. ``host`` tells the host's part, where that is simple.
    """

    case: Case
    simulated: Mapping[str, float | None]
    conditions: Mapping[str, float | None]
    bands: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    host: HostShares | None = None

    def error(self, key: str) -> float | None:
        """Relative error of a figure, (simulated - measured) / measured."""
        value = self.simulated[key]
        return None if value is None else value / self.case.measured[key] - 1
