"""What a run's devices draw: an estimate from how much they compute and how many bytes they move.

A device draws its idle power and a share of what lies between that and its limit. Matrix products at the rate that
devices sustain draw all of it (Patel et al., "Characterizing Power Management Opportunities for LLMs in the Cloud",
ASPLOS 2024: prompts reach the limit). Memory at its full bandwidth draws a part, as decodes do. The host, fans and the
network are not in it.
"""

from typing import Any

from simcore.metrics.metric import Figure
from simcore.metrics.run_facts import PoolFacts, RunFacts
from simcore.recording.fleet_log import PHASES

PRODUCTS_AT_LIMIT = 0.7
"""The share of peak operations at which a device draws its limit: 685 of 989 TFLOP/s at 690 W, as h100-sxm's datasheet
says."""
MEMORY_AT_FULL_RATE = 0.6
"""Of what lies between idle and limit, drawn at full bandwidth. Recalled of that paper: decodes draw 60 to 70% of the
limit."""
FIGURES = (
    Figure(
        name="mean_power_w",
        short="power",
        title="Mean power",
        definition="estimated power of all devices, over the whole run; hosts and network are not in it",
        unit="W",
        place="energy.mean_power_w",
        line="energy",
        wording="{:,.0f} W",
    ),
    Figure(
        name="joules_per_output_token",
        short="energy",
        title="Energy of an output token",
        definition="mean power over output tokens per second",
        unit="J",
        place="energy.joules_per_output_token",
        line="energy",
        wording="{:.3g} J per output token",
        compared=True,
    ),
)


def energy(facts: RunFacts, end_s: float, output_tokens_per_s: float | None) -> dict[str, Any]:
    """The section ``energy`` of a summary; empty where times were measured on a machine, or nothing took time."""
    if facts.measured_on is not None or not end_s:
        return {}
    power_w = sum(_mean_power_w(pool, end_s) for pool in facts.pools)
    return {
        "mean_power_w": power_w,
        "joules_per_output_token": power_w / output_tokens_per_s if output_tokens_per_s else None,
    }


def _mean_power_w(pool: PoolFacts, end_s: float) -> float:
    device, per_replica = pool.accelerator, pool.scenario.cluster.devices_per_replica
    if pool.fleet is None:
        return pool.replicas * per_replica * (device.idle_w + _loaded_w(pool, end_s * pool.batches))
    present_s, computing_s = pool.fleet.seconds_in(PHASES, 0.0, end_s), pool.replica_s(end_s)
    loaded_w = _loaded_w(pool, computing_s) if computing_s else 0.0
    return per_replica * (present_s * device.idle_w + computing_s * loaded_w) / end_s


def _loaded_w(pool: PoolFacts, batch_s: float) -> float:
    """What a device draws beyond its idle power, on average over the time in which it could compute."""
    device = pool.accelerator
    computed = sum(each.flops(pool.cost) for each in pool.work) / (pool.cost.peak_flops_per_s * batch_s)
    moved = sum(each.moved_bytes(pool.cost) for each in pool.work) / (device.memory_bandwidth_bytes_per_s * batch_s)
    share = min(computed / PRODUCTS_AT_LIMIT + MEMORY_AT_FULL_RATE * moved, 1.0)
    return share * (device.tdp_w - device.idle_w)
