"""Where the memory of a replica goes, how many requests fit into the rest, and what would make room for more."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from simcore.build.memory_plan import MemoryPlan
from simcore.memory.capacity import MemoryBudget, tensor_parallel_reach
from simcore.memory.kv_bytes import UNQUANTISED, KvFormat, kv_bytes_per_token
from simcore.memory.reserved import Reservation
from simcore.workload import NO_OUTPUT_LIMIT, ClosedLoop, Sessions, Workload
from simcore.workload.batch import Int64Array, RequestBatch

_MORE_UTILIZATION = 0.95
_WIDE_WEIGHTS = ("fp32", "bf16", "fp16")


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """The memory of one replica as plain figures.

    ``stages`` has the terms of one rank of each pipeline stage, in bytes; ``kv`` what a block is and how many there
    are; ``groups`` the KV cache groups of an engine that releases sliding windows; ``requests`` how many of some length
    hold memory at once; ``limit`` and ``help`` what bounds their number and what would raise it.
    """

    stages: list[dict[str, Any]]
    kv: dict[str, Any]
    groups: list[dict[str, Any]]
    requests: dict[str, dict[str, Any]]
    limit: dict[str, Any]
    help: list[dict[str, Any]]
    notices: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """The report as plain data."""
        return asdict(self) | {"notices": list(self.notices)}


def request_lengths(workload: Workload, max_context_tokens: int) -> Int64Array:
    """Prompt and output together of every request that is not too long to be served, as the workload sends them."""
    lengths = np.concatenate([_lengths(batch) for batch in _sent(workload)])
    return np.asarray(lengths[lengths <= max_context_tokens], dtype=np.int64)


def reserved_lengths(workload: Workload, max_context_tokens: int, reservation: Reservation | None) -> Int64Array | None:
    """Tokens for which each of these requests reserves memory, in the same order; None where nothing is reserved."""
    if reservation is None:
        return None
    reserved = [
        np.full(int((_lengths(batch) <= max_context_tokens).sum()), max_context_tokens)
        if reservation == "longest"
        else _within_limit(batch, max_context_tokens)
        for batch in _sent(workload)
    ]
    return np.asarray(np.concatenate(reserved), dtype=np.int64)


def request_levels(workload: Workload) -> set[int]:
    """The levels of priority that the workload's requests have."""
    priorities = (batch.priority for batch in _sent(workload))
    return {level for each in priorities for level in ([0] if each is None else np.unique(each).tolist())}


def _sent(workload: Workload) -> Iterator[RequestBatch]:
    batches = [workload.requests] if isinstance(workload, ClosedLoop | Sessions) else workload.batches()
    return (batch.cut_to_limits() for batch in batches)


def _lengths(batch: RequestBatch) -> Int64Array:
    return batch.prompt_tokens + batch.output_tokens


def _within_limit(batch: RequestBatch, max_context_tokens: int) -> Int64Array:
    """Prompt and most output of those that are served; the last token generated takes no room."""
    limit = NO_OUTPUT_LIMIT if batch.max_output_tokens is None else batch.max_output_tokens
    most = np.minimum(batch.prompt_tokens.astype(np.int64) + limit, max_context_tokens) - 1
    return np.asarray(most[_lengths(batch) <= max_context_tokens])


def memory_report(plan: MemoryPlan, workload: Workload, max_context_tokens: int) -> MemoryReport:
    """The report of a plan, for the requests of a workload that are not too long to be served.

    Where blocks are kept from less urgent levels, figures are of the most urgent one that the workload has, and of the
    least urgent one beside it.
    """
    levels = request_levels(workload)
    plan, patient = replace(plan, level=min(levels)), replace(plan, level=max(levels))
    lengths = request_lengths(workload, max_context_tokens)
    reserved = reserved_lengths(workload, max_context_tokens, plan.reservation)
    sizes = _sizes(lengths) | {"context": max_context_tokens}
    held = sizes if reserved is None else _sizes(reserved) | {"context": max_context_tokens}
    typical = next(iter(held.values()))
    requests = {name: _requests(plan, patient, tokens, held[name]) for name, tokens in sizes.items()}
    if reserved is not None:
        requests = {name: row | {"reserved_tokens": held[name]} for name, row in requests.items()}
    return MemoryReport(
        stages=[_terms(budget) for budget in plan.budgets],
        kv=_kv(plan) | {"kept_blocks": _kept_blocks(plan, levels)},
        groups=[
            {
                "kind": group.kind,
                "layers": len(group.layers),
                "window_tokens": group.window_tokens,
                "block_size_tokens": group.block_size_tokens,
            }
            for group in plan.releasing_layout.groups
        ],
        requests=requests,
        limit=_limit(plan, patient, typical),
        help=list(_help(plan, typical)),
        notices=plan.notices(lengths),
    )


def _sizes(lengths: Int64Array) -> dict[str, int]:
    if not len(lengths):
        return {}
    p99 = int(np.percentile(lengths, 99, method="inverted_cdf"))
    return {"mean": round(float(lengths.mean())), "p99": p99}


def _terms(budget: MemoryBudget) -> dict[str, Any]:
    return {
        "device_bytes": budget.device_bytes,
        "gpu_memory_utilization": budget.utilization,
        "usable_bytes": budget.usable_bytes,
        "weight_bytes": budget.weight_bytes,
        "activation_bytes": budget.activation_bytes,
        "runtime_bytes": budget.runtime_bytes,
        "collective_bytes": budget.collective_bytes,
        "state_bytes": budget.state_bytes,
        "kv_bytes": budget.kv_bytes,
        "block_bytes": budget.block_bytes,
        "blocks": budget.blocks if budget.block_bytes else None,
    }


def _kv(plan: MemoryPlan) -> dict[str, Any]:
    demand = plan.demand
    of_rank = kv_bytes_per_token(demand.spec, demand.kv_format, plan.ranks, demand.sharing_layers)
    if len(plan.budgets) > 1:  # where a block is of all layers of a stage
        of_rank = plan.decisive.block_bytes // demand.block_size_tokens
    named, others = plan.tenant_blocks
    return {
        "dtype": demand.kv_format.dtype,
        "scales": demand.kv_format.scales,
        "bytes_per_token": kv_bytes_per_token(demand.spec, demand.kv_format, 1, demand.sharing_layers),
        "bytes_per_token_and_rank": of_rank,
        "block_size_tokens": demand.block_size_tokens,
        "block_bytes": plan.decisive.block_bytes,
        "blocks": plan.blocks,
        "computed_blocks": plan.decisive.blocks,
        "source": "given" if plan.given else "computed",
        "null_blocks": plan.null_blocks,
        "request_blocks": plan.request_blocks,
        "pinned_blocks": plan.pinned_blocks,
        "watermark_blocks": plan.watermark_blocks,
        "tenant_blocks": named,
        "other_blocks": others,
        "tokens": plan.request_blocks // len(plan.layout.groups) * demand.block_size_tokens,
    }


def _kept_blocks(plan: MemoryPlan, levels: set[int]) -> dict[int, int]:
    """The blocks that requests of each level are not admitted into, of those levels that there are any."""
    kept = {level: replace(plan, level=level).kept_blocks for level in sorted(levels)}
    return {level: blocks for level, blocks in kept.items() if blocks}


def _requests(plan: MemoryPlan, patient: MemoryPlan, tokens: int, held: int) -> dict[str, Any]:
    """A row for requests of ``tokens`` tokens that have memory for ``held``; ``patient`` is of the least urgent."""
    figures = {"tokens": tokens, "blocks": plan.layout.blocks_held(held), "fit": plan.requests_that_fit(held)}
    if patient.kept_blocks > plan.kept_blocks:
        figures["fit_if_least_urgent"] = patient.requests_that_fit(held)
    if plan.pinned_blocks:
        figures["fit_if_prefix_pinned"] = plan.requests_that_fit_pins(tokens)
    elif plan.releasing_layout.releases and not plan.layout.releases:
        figures["fit_if_windows_released"] = plan.requests_that_fit(tokens, releasing=True)
    return figures


def _limit(plan: MemoryPlan, patient: MemoryPlan, tokens: int) -> dict[str, Any]:
    fit, slots = plan.requests_that_fit(tokens), plan.demand.max_running_requests
    by_memory = fit < slots
    cause = "memory.num_gpu_blocks" if plan.given else "KV memory"
    limit = {
        "requests": int(fit) if by_memory else slots,
        "by": cause if by_memory else "scheduler.batching.max_running_requests",
    }
    if patient.kept_blocks > plan.kept_blocks:
        limit["requests_if_least_urgent"] = min(int(patient.requests_that_fit(tokens)), slots)
    if plan.pinned_blocks:
        limit["requests_if_prefix_pinned"] = min(int(plan.requests_that_fit_pins(tokens)), slots)
    return limit


def _help(plan: MemoryPlan, tokens: int) -> Iterator[dict[str, Any]]:
    """Single settings that let more requests of ``tokens`` tokens run, with how many then would."""
    demand, slots = plan.demand, plan.demand.max_running_requests
    fit = plan.requests_that_fit(tokens)
    if fit >= slots:
        most = int(fit) if plan.given else _most_slots(plan, tokens, int(fit))
        if most > slots:
            yield {"set": f"scheduler.batching.max_running_requests={most}", "requests": most}
        return
    for setting, relaxed in (
        ("memory.watermark_share=0", replace(plan, watermark_share=0.0)),
        ("scheduler.preemption.reserved_blocks={}", replace(plan, reserved_blocks={})),
    ):
        requests = min(int(relaxed.requests_that_fit(tokens)), slots)
        if requests > int(fit):
            yield {"set": setting, "requests": requests}
    if plan.given:
        computed = plan.requests_beside(plan.decisive, tokens)
        if computed > fit:
            yield {"set": "memory.num_gpu_blocks=null", "requests": min(int(computed), slots)}
        return
    if plan.decisive.state_bytes:
        most = _most_slots(plan, tokens, slots)
        if most > int(fit):
            yield {"set": f"scheduler.batching.max_running_requests={most}", "requests": most}
    changes = {}
    if demand.kv_format.dtype in UNQUANTISED:
        changes["precision.kv_cache=fp8"] = replace(demand, kv_format=KvFormat("fp8"))
    if demand.weight_dtype in _WIDE_WEIGHTS:
        changes["precision.weights=fp8"] = replace(demand, weight_dtype="fp8")
    if demand.utilization < _MORE_UTILIZATION:
        key = f"memory.gpu_memory_utilization={_MORE_UTILIZATION}"
        changes[key] = replace(demand, utilization=_MORE_UTILIZATION)
    candidates = [(setting, changed, plan.ranks) for setting, changed in changes.items()]
    ranks = 2 * plan.ranks
    # with data-parallel ranks, cluster.expert_parallel would have to change as well
    whole_heads = demand.spec.common_heads % ranks == 0
    if whole_heads and ranks <= tensor_parallel_reach(plan.accelerator) and demand.data_parallel_ranks == 1:
        candidates.append((f"cluster.tensor_parallel={ranks}", demand, ranks))
    for setting, changed, over in candidates:
        budget = changed.budget(plan.accelerator, over, len(plan.budgets))
        requests = min(int(plan.requests_beside(budget, tokens)), slots)
        if requests > int(fit):
            yield {"set": setting, "requests": requests}


def _most_slots(plan: MemoryPlan, tokens: int, at_most: int) -> int:
    """The most slots that memory can fill: logits and states of more of them leave fewer blocks."""

    def falls_short(slots: int) -> bool:
        demand = replace(plan.demand, max_running_requests=slots)
        return plan.requests_beside(demand.budget(plan.accelerator, plan.ranks, len(plan.budgets)), tokens) < slots

    return bisect_left(range(at_most + 1), True, key=falls_short) - 1
