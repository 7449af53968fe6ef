"""A cluster in words."""

from collections.abc import Mapping
from typing import Any


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


def replicas_of(cluster: Mapping[str, Any]) -> str:
    """All of a cluster, such as "1 replica × 1 h100-sxm" or "2 replicas × 8 h100-sxm (tensor 4, pipeline 2)"."""
    count = int(cluster.get("replicas", 1))
    return f"{count:,} replica{'' if count == 1 else 's'} × {described(cluster)}"
