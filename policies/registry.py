"""Policies by kind and name. A third party adds one with an entry point of the group ``servetwin.policies``.

The entry point's name is ``KIND.NAME`` (for example ``ordering.my-order``), its value the class.
"""

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

ENTRY_POINT_GROUP = "servetwin.policies"

BUILT_IN: dict[str, dict[str, str]] = {
    "admission": {
        "circuit-breaker": "policies.admission.circuit_breaker:CircuitBreaker",
        "concurrency-limit": "policies.admission.concurrency_limit:ConcurrencyLimit",
        "leaky-bucket": "policies.admission.leaky_bucket:LeakyBucket",
        "queue-limit": "policies.admission.queue_limit:QueueLimit",
        "sliding-window": "policies.admission.sliding_window:SlidingWindow",
        "token-bucket": "policies.admission.token_bucket:TokenBucket",
        "watermark": "policies.admission.watermark:Watermark",
    },
    "eviction": {
        "cost-aware": "policies.eviction.cost_aware:CostAware",
        "length-aware": "policies.eviction.length_aware:LengthAware",
        "lfu": "policies.eviction.lfu:LeastFrequentlyUsed",
        "lru": "policies.eviction.lru:LeastRecentlyUsed",
        "priority": "policies.eviction.priority:LeastUrgentFirst",
    },
    "ordering": {
        "credit": "policies.ordering.credit:Credit",
        "drf": "policies.ordering.drf:DominantResourceFairness",
        "drr": "policies.ordering.drr:DeficitRoundRobin",
        "edf": "policies.ordering.edf:EarliestDeadlineFirst",
        "fcfs": "policies.ordering.fcfs:FirstComeFirstServed",
        "hybrid": "policies.ordering.hybrid:Hybrid",
        "longest-prefix": "policies.ordering.longest_prefix:LongestPrefixFirst",
        "mlfq": "policies.ordering.mlfq:MultiLevelFeedbackQueue",
        "priority": "policies.ordering.priority:Priority",
        "sjf": "policies.ordering.sjf:ShortestJobFirst",
        "srpt": "policies.ordering.srpt:ShortestRemainingFirst",
        "two-level": "policies.ordering.two_level:TwoLevel",
        "vtc": "policies.ordering.vtc:VirtualTokenCounter",
        "wfq": "policies.ordering.wfq:WeightedFairQueueing",
    },
    "batching": {
        "bucketed": "policies.batching.bucketed:Bucketed",
        "chunked-prefill": "policies.batching.chunked_prefill:ChunkedPrefill",
        "decode-prefill-alternate": "policies.batching.decode_prefill_alternate:DecodePrefillAlternate",
        "dynamic": "policies.batching.dynamic:Dynamic",
        "group-balanced": "policies.batching.group_balanced:GroupBalanced",
        "in-flight": "policies.batching.in_flight:InFlight",
        "prefill-first": "policies.batching.prefill_first:PrefillFirst",
        "queue-aware": "policies.batching.queue_aware:QueueAware",
        "slo-feedback": "policies.batching.slo_feedback:SloFeedback",
        "static": "policies.batching.static:Static",
        "waiting-served": "policies.batching.waiting_served:WaitingServed",
    },
    "preemption": {
        "fewest-tokens-lost": "policies.preemption.fewest_tokens_lost:FewestTokensLost",
        "latest": "policies.preemption.latest:Latest",
        "longest-remaining": "policies.preemption.longest_remaining:LongestRemaining",
        "lowest-priority": "policies.preemption.lowest_priority:LowestPriority",
    },
    "prediction": {
        "class-mean": "policies.prediction.class_mean:ClassMean",
        "max-tokens": "policies.prediction.max_tokens:MaxTokens",
        "moving-average": "policies.prediction.moving_average:MovingAverage",
        "noisy-oracle": "policies.prediction.noisy_oracle:NoisyOracle",
        "oracle": "policies.prediction.oracle:Oracle",
        "prompt-linear": "policies.prediction.prompt_linear:PromptLinear",
        "rank-noise": "policies.prediction.rank_noise:RankNoise",
    },
    "routing": {
        "dedicated": "policies.routing.dedicated:Dedicated",
        "round-robin": "policies.routing.round_robin:RoundRobin",
    },
}


class UnknownPolicyError(LookupError):
    """No policy of this kind has this name; ``known`` lists those that there are."""

    def __init__(self, kind: str, name: str, known: tuple[str, ...]) -> None:
        self.kind = kind
        self.name = name
        self.known = known
        super().__init__(f"no {kind} policy is called {name!r}; known: {', '.join(known)}")


@cache
def _third_party(kind: str) -> dict[str, str]:
    prefix = f"{kind}."
    return {
        point.name.removeprefix(prefix): point.value
        for point in entry_points(group=ENTRY_POINT_GROUP)
        if point.name.startswith(prefix)
    }


def policy_names(kind: str) -> tuple[str, ...]:
    """The names of all policies of a kind, sorted."""
    return tuple(sorted({*BUILT_IN[kind], *_third_party(kind)}))


def policy_class(kind: str, name: str) -> type[Any]:
    """The class registered under a kind and a name; a built-in wins over a third party's of the same name.

    Raises:
        UnknownPolicyError: no such policy.
    """
    target = BUILT_IN[kind].get(name) or _third_party(kind).get(name)
    if target is None:
        raise UnknownPolicyError(kind, name, policy_names(kind))
    module, _, attribute = target.partition(":")
    found: type[Any] = getattr(import_module(module), attribute)
    return found


def policy_name(kind: str, policy: type[Any]) -> str:
    """The name under which a class is registered; raises ``LookupError`` if it is not."""
    target = f"{policy.__module__}:{policy.__qualname__}"
    for name, registered in (*BUILT_IN[kind].items(), *_third_party(kind).items()):
        if registered == target:
            return name
    raise LookupError(f"{target} is not registered as a {kind} policy")
