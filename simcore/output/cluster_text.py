"""A cluster in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from simcore.scenario.sections import Devices


def described(cluster: Mapping[str, Any]) -> str:
    """The accelerators of one replica, such as "2 h100-sxm" or "8 h100-sxm (tensor 4, pipeline 2)".

    ``cluster`` is that section of a scenario's document; what it does not say is not split.
    """
    ways = {
        "tensor": "tensor_parallel",
        "pipeline": "pipeline_parallel",
        "data": "data_parallel",
        "context": "context_parallel",
    }
    sizes = {way: int(cluster.get(key, 1)) for way, key in ways.items()}
    devices = 1
    for size in sizes.values():
        devices *= size
    sizes["expert"] = int(cluster.get("expert_parallel", 1))
    plain = all(size == 1 for way, size in sizes.items() if way != "tensor")
    split = "" if plain else f" ({', '.join(f'{way} {size}' for way, size in sizes.items() if size > 1)})"
    return f"{devices} {cluster['accelerator']}{split}"


def pools_of(cluster: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The pools of a cluster; where all replicas are alike, that section itself."""
    pools: Sequence[Mapping[str, Any]] = cluster.get("pools") or [cluster]
    return pools


def replica_count(cluster: Mapping[str, Any]) -> int:
    """The replicas of all pools, as many as there can be at once."""
    return sum(_places(pool) for pool in pools_of(cluster))


def _places(pool: Mapping[str, Any]) -> int:
    stated = {name: pool[name] for name in Devices.model_fields if name in pool}
    return Devices.model_validate(stated).places


def replicas_of(cluster: Mapping[str, Any]) -> str:
    """All of a cluster, such as "1 replica × 1 h100-sxm", or "2 replicas × 1 h200-sxm (a), 1 replica × 8 l4 (b)"."""
    return ", ".join(_like_replicas(pool) for pool in pools_of(cluster))


def _like_replicas(pool: Mapping[str, Any]) -> str:
    count = int(pool.get("replicas", 1))
    name = f" ({pool['name']})" if "name" in pool else ""
    return f"{_number(pool)} replica{'' if count == 1 else 's'} × {described(pool)}{name}"


def _number(pool: Mapping[str, Any]) -> str:
    """How many replicas there are, or from how many to how many they may be."""
    scaling = pool.get("scaling")
    if scaling:
        return f"{scaling['min_replicas']:,} to {scaling['max_replicas']:,}"
    return f"{int(pool.get('replicas', 1)):,}"


def replicas_seen(pool: Mapping[str, Any]) -> str:
    """The replicas of a pool of a summary: how many there are, or the fewest and the most that served at once."""
    scaling = pool.get("scaling")
    return (
        f"{pool['replicas']:,}" if scaling is None else f"{scaling['least_replicas']:,} to {scaling['most_replicas']:,}"
    )


def replica_name(summary: Mapping[str, Any], replica: int) -> str:
    """A replica of a run by its number, with its pool where pools are stated."""
    for name, pool in summary.get("pools", {}).items():
        if 0 <= replica - pool["first_replica"] < pool["replicas"]:
            return f"{name}: replica {replica}"
    return f"replica {replica}"
