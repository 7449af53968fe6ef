"""The machines of a scenario."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from simcore.scenario.sections.bounds import Policy
from simcore.scenario.sections.devices import Devices
from simcore.scenario.sections.network import Handover, Migration, Network
from simcore.scenario.sections.pools import Pool


class Cluster(Devices):
    """The machines: like replicas, or pools of them, and the policy that routes requests.

    With ``pools``, the other fields of devices are what pools take that do not state theirs.
    """

    routing: Policy = {"name": "round-robin"}
    """Policy that picks a replica for each request."""
    assignment: Policy | None = None
    """Policy that picks the pool of each request, in which it stays. By default ``routing`` picks among all."""
    pools: Annotated[list[Pool], Field(min_length=1, max_length=100)] | None = None
    """Pools of replicas, where not all are alike. Devices that a pool does not state are those stated beside."""

    network: Network | None = None
    """What lies between replicas, for pools that hand over requests and for those that migrate."""
    handover: Handover | None = None
    """How requests go from pools that prefill to pools that decode."""
    migration: Migration | None = None
    """How running requests go from replica to replica. By default they stay."""

    @model_validator(mode="before")
    @classmethod
    def _hand_down(cls, section: Any) -> Any:
        """Pools take what is stated beside them; the accelerator beside them is that of the first."""
        if not isinstance(section, Mapping) or not isinstance(section.get("pools"), list):
            return section
        shared = {name: section[name] for name in Devices.model_fields if name in section}
        pools = [{**shared, **pool} if isinstance(pool, Mapping) else pool for pool in section["pools"]]
        first = pools[0] if pools and isinstance(pools[0], Mapping) else {}
        stated = {"accelerator": first["accelerator"]} if "accelerator" in first else {}
        return {**stated, **section, "pools": pools}

    @field_validator("pools")
    @classmethod
    def _names_differ(cls, pools: list[Pool] | None) -> list[Pool] | None:
        names = [pool.name for pool in pools or ()]
        if len(set(names)) < len(names):
            raise ValueError(f"pools of different names, not {', '.join(names)}")
        return pools

    @property
    def takes_back(self) -> bool:
        """Whether some instances may be taken back by their provider."""
        return any(part.spot is not None for part in (*(self.pools or ()), self))
