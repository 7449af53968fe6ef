"""How full KV memory was, and what of prompts was found in it."""

from typing import Any

import numpy as np

from simcore.core.result import Columns
from simcore.metrics.arrays import Float64Array
from simcore.metrics.definitions import prefix_hit_rate
from simcore.metrics.run_facts import PoolFacts, RunFacts, common
from simcore.metrics.transfers import tier_figures


def kv_figures(facts: RunFacts, requests: Columns, steps: Columns, end_s: float) -> dict[str, Any]:
    """The section ``kv`` of a summary."""
    pools, warmup_s = facts.pools, facts.scenario.measurement.warmup_s
    # Within a row blocks grow about evenly.
    mean_blocks = (steps["used_blocks"] + steps["used_blocks_at_end"]) / 2
    held = float((mean_blocks * _until_next_s(steps)).sum())
    block_s = sum(pool.total_blocks * pool.replicas for pool in pools) * end_s
    if not facts.fixed:
        block_s = sum(pool.total_blocks * pool.replica_s(end_s) for pool in pools)
    admitted = requests["first_scheduled_s"] >= warmup_s
    hit_rate = prefix_hit_rate(requests["cached_tokens"][admitted], requests["prompt_tokens"][admitted])
    given = {pool.scenario.memory.num_gpu_blocks is not None for pool in pools}
    return {
        "block_size_tokens": common(_block_size(pool) for pool in pools),
        "blocks_per_replica": common(pool.total_blocks for pool in pools),
        "capacity_tokens_per_replica": common(
            pool.total_blocks // pool.block_tables * _block_size(pool) for pool in pools
        ),
        "bytes_per_token": common(pool.kv_bytes_per_token for pool in pools),
        "peak_used_blocks": max(pool.peak_used_blocks for pool in pools),
        "mean_used_share": held / block_s if block_s else None,
        "prefix_hit_rate": hit_rate if any(pool.scenario.memory.prefix_caching for pool in pools) else None,
        "tiers": tier_figures(facts.offloadings, requests, admitted),
        "source": "partly given" if len(given) > 1 else "given" if True in given else "computed",
    }


def _block_size(pool: PoolFacts) -> int:
    return pool.scenario.memory.block_size_tokens


def _until_next_s(steps: Columns) -> Float64Array:
    """What each row lasts, up to the next of its replica at most, which begins before where several are in flight."""
    order = np.lexsort((steps["start_s"], steps["replica"]))
    start_s, end_s, replica = (steps[name][order] for name in ("start_s", "end_s", "replica"))
    until_s = end_s.copy()
    follows = replica[1:] == replica[:-1]
    until_s[:-1][follows] = np.minimum(end_s[:-1], start_s[1:])[follows]
    lasts_s: Float64Array = np.empty_like(until_s)
    lasts_s[order] = until_s - start_s
    return lasts_s
