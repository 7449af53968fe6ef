"""What a scenario takes for granted without saying so, told as notices."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from policies.ordering import GroupOrdering
from policies.registry import policy_class
from simcore.build.memory_plan import MemoryPlan
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import nested_kinds
from simcore.workload import NO_OUTPUT_LIMIT, ClosedLoop, Sessions, Workload
from simcore.workload.batch import RequestBatch

_TRUE_LENGTHS = "oracle"
_MOST_TOKENS = "max-tokens"


def assumed(scenario: Scenario, workload: Workload) -> tuple[str, ...]:
    """One sentence for each policy that knows, or does without, what the reader may not expect."""
    scheduler = scenario.scheduler
    sections = {
        "scheduler.ordering": ("ordering", scheduler.ordering),
        "scheduler.preemption.victim": ("preemption", scheduler.preemption.victim),
    }
    sections |= {f"scheduler.admission.{place}": ("admission", it) for place, it in enumerate(scheduler.admission)}
    predictors = [each for field, (kind, it) in sections.items() for each in _predictors(kind, it, field)]
    notices = [
        f"{field} {policy!r} knows every true output length (predictor {_TRUE_LENGTHS}), as no service does."
        for field, policy, predictor in predictors
        if predictor == _TRUE_LENGTHS
    ]
    counted = [field for field, (_, it) in sections.items() if it.get("unit") == "tokens"]
    counted += [field for field, _, predictor in predictors if predictor == _MOST_TOKENS]
    if counted and any(_unlimited(batch) for batch in _batches(workload)):
        notices += [
            f"{field} counts requests without max_output_tokens as if each filled the whole context."
            for field in dict.fromkeys(counted)
        ]
    if scenario.adapters is not None:
        notices.append("Adapters are priced by roofline, whatever prices the other kernels; no figure was measured.")
    ordering = policy_class("ordering", scheduler.ordering["name"])
    by_tenant = "tenant" in getattr(ordering, "keyed_by", {}).values()
    by_tenant = by_tenant or (issubclass(ordering, GroupOrdering) and ordering.group is GroupOrdering.group)
    if by_tenant and len({name for batch in _batches(workload) for name in _tenants(batch)}) == 1:
        notices.append(
            f"scheduler.ordering {scheduler.ordering['name']!r} divides service among tenants, of which there is one."
        )
    return tuple(notices)


def too_long_a_context(plan: MemoryPlan, max_context_tokens: int) -> tuple[str, ...]:
    """A warning if a request of the whole context could never be served: vLLM checks that before it starts."""
    room = plan.group_blocks
    if plan.layout.blocks_held(max_context_tokens) <= room:
        return ()
    longest = bisect_right(range(max_context_tokens), room, key=plan.layout.blocks_held) - 1
    where = f"does not fit the KV memory of a replica: the longest that fits is {longest:,} tokens (max_context_tokens)"
    return (f"A request of the whole context, {max_context_tokens:,} tokens, {where}; vLLM refuses to start so.",)


def _predictors(kind: str, section: Mapping[str, Any], field: str) -> Iterator[tuple[str, str, str]]:
    """The place and name of each policy that asks a predictor, and that predictor's name."""
    for parameter, inner in nested_kinds(policy_class(kind, section["name"])).items():
        if inner == "prediction":
            yield field, section["name"], section[parameter]["name"]
        else:
            yield from _predictors(inner, section[parameter], f"{field}.{parameter}")


def _batches(workload: Workload) -> Iterable[RequestBatch]:
    return [workload.requests] if isinstance(workload, ClosedLoop | Sessions) else workload.batches()


def _unlimited(batch: RequestBatch) -> bool:
    return batch.max_output_tokens is None or bool((batch.max_output_tokens == NO_OUTPUT_LIMIT).any())


def _tenants(batch: RequestBatch) -> Iterable[str]:
    return {batch.tenants[place] for place in set(batch.tenant.tolist())} if batch.tenant is not None else ("",)
