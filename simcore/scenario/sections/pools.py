"""The pools of a cluster: like replicas, with accelerators and settings of their own."""

from typing import Literal

from pydantic import field_validator

from simcore.scenario.sections.devices import Devices
from simcore.scenario.sections.memory import Memory
from simcore.scenario.sections.precision import Precision
from simcore.scenario.sections.prices import Efficiency, Host, Pricing
from simcore.scenario.sections.scheduler import SchedulerSection
from simcore.workload.config.section import Text


class Pool(Devices):
    """Replicas that are alike, with their accelerators, their engine and its settings."""

    name: Text
    """What reports call the pool. No two are called the same."""
    role: Literal["mixed", "prefill", "decode"] = "mixed"
    """What its replicas do: all of a request (``mixed``), its prompt (``prefill``) or its output (``decode``)."""
    model: Text | None = None
    """Its model. By default the scenario's ``model``."""
    engine: str | None = None
    """Preset of the pool's settings. By default the scenario's ``engine``."""
    precision: Precision | None = None
    """What differs from the scenario's ``precision``."""
    memory: Memory | None = None
    """What differs from the scenario's ``memory``."""
    scheduler: SchedulerSection | None = None
    """What differs from the scenario's ``scheduler``. Admission is the service's, before all pools."""
    host: Host | None = None
    """What differs from the scenario's ``host``."""
    pricing: Pricing | None = None
    """What differs from the scenario's ``pricing``."""
    efficiency: Efficiency | None = None
    """What differs from the scenario's ``efficiency``."""

    @field_validator("scheduler")
    @classmethod
    def _admits_all(cls, scheduler: SchedulerSection | None) -> SchedulerSection | None:
        if scheduler is not None and scheduler.admission:
            raise ValueError("no admission of a pool's own: scheduler.admission is the service's, before all pools")
        return scheduler
