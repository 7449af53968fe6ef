"""The updates that a scenario states."""

from collections.abc import Sequence
from itertools import accumulate

from simcore.build.cluster import SimulatedCluster
from simcore.build.pool import PreparedPool
from simcore.core.clock import to_ns
from simcore.core.errors import InputError, UnknownNameError
from simcore.scenario import Scenario
from simcore.service.clock import Clock
from simcore.service.stage import Stage
from simcore.service.updates import UpdatePlan, Updates


def check_updates(scenario: Scenario, pools: Sequence[PreparedPool]) -> None:
    """Raise ``InputError`` for updates of pools that there are not, or that cannot become like each other."""
    named = {pool.name: pool for pool in pools}
    for place, update in enumerate(scenario.updates or ()):
        field = f"updates.{place}"
        if scenario.cluster.pools is None:
            raise InputError(f"{field}.pool", update.pool, "no update without cluster.pools")
        for name in ("pool", "to"):
            if getattr(update, name) not in named:
                raise UnknownNameError(f"{field}.{name}", getattr(update, name), named)
        old, new = named[update.pool], named[update.to]
        reasons = {
            "it is the same": old is new,
            f"replicas of {update.pool} come and go": old.scenario.cluster.scaling is not None,
            "their models differ": old.spec.name != new.spec.name,
            "their accelerators differ": old.accelerator != new.accelerator,
            "replicas come and go": (old.scenario.cluster.scaling or new.scenario.cluster.scaling) is not None,
            "pools hand requests over": any(pool.role != "mixed" for pool in pools),
            "pipeline stages have batches in flight": old.pipeline is not None or new.pipeline is not None,
            "memory.tiers outlive a replica": bool(old.scenario.memory.tiers or new.scenario.memory.tiers),
            "their devices per replica differ": (
                old.scenario.cluster.devices_per_replica != new.scenario.cluster.devices_per_replica
            ),
        }
        for reason, holds in reasons.items():
            if holds:
                raise InputError(f"{field}.to", update.to, f"another pool like {update.pool}, but {reason}")


def build_updates(
    scenario: Scenario, pools: Sequence[PreparedPool], cluster: SimulatedCluster, stage: Stage, clock: Clock
) -> Updates | None:
    """What replaces replicas, None where nothing does; updates after the end of the run are left out."""
    if not scenario.updates:
        return None
    firsts = dict(zip((pool.name for pool in pools), accumulate((p.replicas for p in pools), initial=0), strict=False))
    sizes, end_s = {pool.name: pool.replicas for pool in pools}, scenario.measurement.end_s
    updates = Updates(clock, stage, cluster.rebuild)
    updates.schedule(
        [
            UpdatePlan(
                update.name,
                range(firsts[update.pool], firsts[update.pool] + sizes[update.pool]),
                firsts[update.to],
                to_ns(update.at_s),
                to_ns(update.load_s),
                update.most_out if update.name == "rolling" else None,
            )
            for update in scenario.updates
            if end_s is None or update.at_s < end_s
        ]
    )
    return updates
