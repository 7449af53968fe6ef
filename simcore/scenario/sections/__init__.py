"""The sections of a scenario document, as a user writes them.

The text below each field is its meaning in docs/reference/scenario.md, which ``tools/scenario_page.py`` writes.
"""

from simcore.scenario.sections.adapters import Adapters
from simcore.scenario.sections.bounds import with_whole_keys
from simcore.scenario.sections.cluster import Cluster
from simcore.scenario.sections.devices import Devices
from simcore.scenario.sections.document import Scenario
from simcore.scenario.sections.faults import Crash
from simcore.scenario.sections.gateway import Gateway
from simcore.scenario.sections.memory import Memory
from simcore.scenario.sections.network import Handover, Migration, Network
from simcore.scenario.sections.pools import Pool
from simcore.scenario.sections.precision import Precision
from simcore.scenario.sections.prices import Efficiency, Host, Pricing
from simcore.scenario.sections.retries import Retries
from simcore.scenario.sections.reuse import PrefixCache, Retention
from simcore.scenario.sections.scaling import Reclaim, Scaling, Spot, Start
from simcore.scenario.sections.scheduler import Preemption, SchedulerSection
from simcore.scenario.sections.targets import Measurement, Objectives
from simcore.scenario.sections.tiers import CpuTier, HostLink, StorageTier

__all__ = [
    "Adapters",
    "Cluster",
    "CpuTier",
    "Crash",
    "Devices",
    "Efficiency",
    "Gateway",
    "Handover",
    "Host",
    "HostLink",
    "Measurement",
    "Memory",
    "Migration",
    "Network",
    "Objectives",
    "Pool",
    "Precision",
    "Preemption",
    "PrefixCache",
    "Pricing",
    "Reclaim",
    "Retention",
    "Retries",
    "Scaling",
    "Scenario",
    "SchedulerSection",
    "Spot",
    "Start",
    "StorageTier",
    "with_whole_keys",
]
