"""The whole scenario document."""

from typing import Annotated, Any

from pydantic import Field

from simcore.engines import DEFAULT_ENGINE
from simcore.scenario.sections.adapters import Adapters
from simcore.scenario.sections.bounds import Count
from simcore.scenario.sections.cluster import Cluster
from simcore.scenario.sections.devices import Devices
from simcore.scenario.sections.faults import FaultSection
from simcore.scenario.sections.gateway import Gateway
from simcore.scenario.sections.memory import Memory
from simcore.scenario.sections.precision import Precision
from simcore.scenario.sections.prices import Efficiency, Host, Pricing
from simcore.scenario.sections.retries import Retries
from simcore.scenario.sections.scheduler import SchedulerSection
from simcore.scenario.sections.targets import Measurement, Objectives
from simcore.scenario.sections.updates import Update
from simcore.workload.config import WorkloadConfig
from simcore.workload.config.section import Section, Text


class Scenario(Section):
    """Everything a run depends on."""

    model: Text
    """A name that ``servetwin models`` lists, or the path of a Hugging Face ``config.json`` or its folder."""
    cluster: Cluster
    """The machines."""
    workload: WorkloadConfig
    """The requests."""
    engine: str = DEFAULT_ENGINE
    """Preset of the settings of ``host``, ``scheduler`` and ``memory``, each of which can be stated otherwise; of a
    version with ``vllm@0.12``."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of everything random. The same scenario and seed give the same run, to the bit."""
    max_context_tokens: Count | None = None
    """Longest prompt and output together. By default what the model allows. A longer request is rejected."""
    precision: Precision = Precision()
    """Number formats."""
    memory: Memory = Memory()
    """KV memory."""
    adapters: Adapters | None = None
    """LoRA adapters over the model. By default there are none."""
    scheduler: SchedulerSection = SchedulerSection()
    """Policies of every replica."""
    host: Host = Host()
    """Time that the host takes."""
    pricing: Pricing = Pricing()
    """Where prices of kernels come from."""
    efficiency: Efficiency = Efficiency()
    """How near kernels come to the datasheet."""
    faults: list[FaultSection] | None = None
    """What goes wrong, and when. By default nothing does."""
    retries: Retries | None = None
    """What becomes of requests that lose their replica."""
    gateway: Gateway | None = None
    """What is done for requests beside routing them. By default nothing."""
    updates: list[Update] | None = None
    """Pools whose replicas are replaced while the service goes on. By default none are."""
    slo: Objectives = Objectives()
    """Service level objectives."""
    measurement: Measurement = Measurement()
    """Which requests are measured."""

    def document(self) -> dict[str, Any]:
        """The scenario in full, every default filled in, as plain data."""
        document: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        cluster = document["cluster"]
        if "pools" in cluster:  # each of which states its devices
            document["cluster"] = {name: value for name, value in cluster.items() if name not in Devices.model_fields}
        return document
