"""How full KV memory was, and what of prompts was found in it."""

from typing import Any

import numpy as np

from simcore.core.result import Columns
from simcore.metrics.arrays import Float64Array
from simcore.metrics.definitions import prefix_hit_rate
from simcore.metrics.run_facts import RunFacts
from simcore.metrics.transfers import tier_figures


def kv_figures(facts: RunFacts, requests: Columns, steps: Columns, end_s: float) -> dict[str, Any]:
    """The section ``kv`` of a summary."""
    scenario = facts.scenario
    block_size = scenario.memory.block_size_tokens
    # Within a row blocks grow about evenly.
    mean_blocks = (steps["used_blocks"] + steps["used_blocks_at_end"]) / 2
    held = float((mean_blocks * _until_next_s(steps)).sum())
    all_blocks = facts.total_blocks * scenario.cluster.replicas
    admitted = requests["first_scheduled_s"] >= scenario.measurement.warmup_s
    hit_rate = prefix_hit_rate(requests["cached_tokens"][admitted], requests["prompt_tokens"][admitted])
    return {
        "block_size_tokens": block_size,
        "blocks_per_replica": facts.total_blocks,
        "capacity_tokens_per_replica": facts.total_blocks // facts.block_tables * block_size,
        "bytes_per_token": facts.kv_bytes_per_token,
        "peak_used_blocks": facts.peak_used_blocks,
        "mean_used_share": held / (all_blocks * end_s) if end_s else None,
        "prefix_hit_rate": hit_rate if scenario.memory.prefix_caching else None,
        "tiers": tier_figures(facts.offloadings, requests, admitted),
        "source": "computed" if scenario.memory.num_gpu_blocks is None else "given",
    }


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
