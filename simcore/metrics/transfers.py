"""What moved over the links to memory below the GPU's, and what that served."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simcore.core.clock import NS_PER_S
from simcore.core.result import Columns
from simcore.memory.link import KINDS
from simcore.metrics.definitions import prefix_hit_rate
from simcore.scheduling.offloading import Offloading


def transfer_table(offloadings: Sequence[Offloading]) -> Columns:
    """One row per transfer, by replica, then link, then in order of time; ``end_s`` is when it freed its link."""
    rows = [
        (replica, link.name, KINDS[kind], start_ns, end_ns, size_bytes)
        for replica, offloading in enumerate(offloadings)
        for link in offloading.links
        for kind, start_ns, end_ns, size_bytes in link.transfers
    ]
    replica, link, kind, start_ns, end_ns, size_bytes = zip(*rows, strict=True) if rows else ((),) * 6
    return {
        "replica": np.array(replica, dtype=np.int64),
        "link": np.array(link, dtype=np.str_),
        "kind": np.array(kind, dtype=np.str_),
        "start_s": np.array(start_ns, dtype=np.int64) / NS_PER_S,
        "end_s": np.array(end_ns, dtype=np.int64) / NS_PER_S,
        "size_bytes": np.array(size_bytes, dtype=np.int64),
    }


def link_figures(offloadings: Sequence[Offloading], transfers: Columns, end_s: float) -> dict[str, Any] | None:
    """By link: what began to move before the end of the run, and the share of time in which it moved."""
    figures: dict[str, Any] = {}
    for name in dict.fromkeys(link.name for offloading in offloadings for link in offloading.links):
        own = (transfers["link"] == name) & (transfers["start_s"] < end_s)
        busy_s = float((np.minimum(transfers["end_s"][own], end_s) - transfers["start_s"][own]).sum())
        figures[name] = {
            "transfers": int(own.sum()),
            "bytes": int(transfers["size_bytes"][own].sum()),
            "busy_share": busy_s / (end_s * len(offloadings)) if end_s else None,
        }
    return figures or None


def tier_figures(
    offloadings: Sequence[Offloading], requests: Columns, admitted: NDArray[np.bool_]
) -> dict[str, Any] | None:
    """By tier: blocks it holds per replica, and share of the prompt tokens of ``admitted`` requests that it had.

    None without tiers, and where replicas do not have the same ones.
    """
    chains = [offloading.tiers for offloading in offloadings if offloading.tiers is not None]
    alike = {tuple((tier.name, tier.capacity_blocks) for tier in chain.tiers) for chain in chains}
    if len(alike) != 1 or len(chains) < len(offloadings):
        return None
    tiers = chains[0].tiers
    prompts, cached = requests["prompt_tokens"][admitted], requests["cached_tokens"][admitted]
    hits = {number: found for chain in chains for number, found in chain.hits.items()}
    none = (0,) * len(tiers)
    numbers = requests["request_id"][admitted].tolist()
    found = np.array([hits.get(number, none) for number in numbers], dtype=np.int64).reshape(-1, len(tiers))
    figures: dict[str, Any] = {"gpu": {"hit_rate": prefix_hit_rate(cached - found.sum(axis=1), prompts)}}
    for place, tier in enumerate(tiers):
        hit_rate = prefix_hit_rate(found[:, place], prompts)
        figures[tier.name] = {"hit_rate": hit_rate, "capacity_blocks": tier.capacity_blocks}
    return figures


def swap_figures(offloadings: Sequence[Offloading]) -> dict[str, int]:
    """Times and bytes that requests were swapped out and in."""
    spaces = [(item.swapping.space, item.block_bytes) for item in offloadings if item.swapping is not None]
    return {
        "swapped_out": sum(space.swaps_out for space, _ in spaces),
        "swapped_in": sum(space.swaps_in for space, _ in spaces),
        "swapped_out_bytes": sum(space.blocks_out * size_bytes for space, size_bytes in spaces),
        "swapped_in_bytes": sum(space.blocks_in * size_bytes for space, size_bytes in spaces),
    }
