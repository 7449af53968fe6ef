"""What limits a set-up, read from the run that tried it."""

from typing import Literal

from experiments.planner.trial import Held, Outcome

Limit = Literal["memory", "compute", "bandwidth", "queue"]
_FULL = 0.97
"""Share of the KV blocks from which on memory is full."""
_QUEUED = 0.5
"""Share of the time to first token from which on it is mostly queueing."""


def limited_by(outcome: Outcome) -> Limit:
    """What the tightest limit comes from.

    KV memory, if it was full or requests were preempted. Else, for TTFT, the queue if requests wait for half of it or
    longer, and compute if prompts do. For TPOT and E2E, memory bandwidth or compute, whichever is used more.
    """
    kv, used, preempted = outcome.figures["kv"], outcome.figures["utilisation"], outcome.figures["preemptions"]
    blocks = kv["blocks_per_replica"]  # None where pools have other numbers of them
    if preempted["total"] or (blocks is not None and kv["peak_used_blocks"] >= _FULL * blocks):
        return "memory"
    tightest = outcome.tightest
    if tightest.metric == "ttft_s":
        queue_s = outcome.figures["metrics"]["queue_s"][tightest.percentile]
        waits = queue_s is not None and tightest.value_s is not None and queue_s >= _QUEUED * tightest.value_s
        return "queue" if waits else "compute"
    return "bandwidth" if (used["mbu"] or 0.0) >= (used["mfu"] or 0.0) else "compute"


def told(held: Held, sure: bool) -> str:
    """How far a limit was kept, in words: ``ttft_p99 <= 0.5 s kept by 98.2% (97.9 to 98.4%), 99% asked``."""
    if held.share is None:
        return f"{held.name} <= {held.limit_s:g} s: no request has one"
    low, high = (f"{100 * bound:.4g}" for bound in (held.low, held.high))
    kept = f"{held.name} <= {held.limit_s:g} s kept by {100 * held.share:.4g}% ({low} to {high}%)"
    return f"{kept}, {100 * held.needed:g}% asked" + ("" if sure else ": too near to tell")


def worst(outcome: Outcome) -> Held:
    """The limit that is furthest from being kept, by the share of requests."""
    return min(outcome.limits, key=lambda held: (held.share if held.share is not None else 1.0) - held.needed)
