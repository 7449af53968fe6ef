"""From a measured engine run to the scenario that repeats it, as its harness ran it."""

from typing import Any

from fidelity.case import Case, Refusal
from fidelity.engine_runs import EngineRun
from fidelity.run_names import RunNames, labels_of, names_of, split_labels
from fidelity.setups import Setup, setups
from simcore.engines import load_engine

SHORTEST_SHARE = 0.8
"""The harness draws lengths uniformly from this share of the stated length up to all of it."""
EXPOSED_HOST = {"step_s": 1.4e-3, "per_request_s": 4.3e-5}
"""The host of an engine that does not prepare the next step while kernels run, as vLLM did only if asked before 0.14.
Fitted to the TPOT of two rows of vLLM 0.12 (Qwen3-32B in bf16 on eight H100, 1024 tokens in and out, 8 and 128
clients). It is about two fifths of what was profiled of vLLM in 2024, before its engine was written anew (4 ms of
waiting in a step, vllm-project/vllm issue 6854; 0.1 ms for each request, issue 6913)."""

PROSE_TOKEN_S = 5e-7
"""What a token of prose takes to be tokenised, in seconds, the least that is possible: tokenisers keep the tokens of
words that they have seen. InferenceX's prompts are tokens at random, whose words are never seen twice."""

_HOST_SETTINGS = ("max_cudagraph_tokens", "mixed_graphs", "async_scheduling", "step_s")


def case_of(run: EngineRun) -> Case | Refusal:
    """The scenario of a row, or the reason why it has none."""
    named = names_of(run)
    labels = labels_of(run, named)
    if isinstance(named, str):
        return Refusal(run.name, labels, named)
    concurrency = _concurrency(run)
    if isinstance(concurrency, str):
        return Refusal(run.name, labels, concurrency)
    measured = {"ttft_s.mean": run.ttft_s, "tpot_s.mean": run.tpot_s}
    setup = next(setup for setup in setups() if setup.fits(run, named, concurrency))
    if setup.speculative:
        return Refusal(run.name, labels, "speculative decoding, which is not simulated")
    document = _document(setup, run, named, concurrency)
    labels |= split_labels(document["cluster"])
    return Case(run.name, labels, document, measured, () if setup.is_known else _plausible(setup, document))


def _concurrency(run: EngineRun) -> int | str:
    if run.concurrency is None:
        return run.batch_size or "no concurrency stated"
    # Rows that state data parallelism give the batch of one rank.
    per_rank = run.concurrency // run.attention_data_parallel
    if run.batch_size not in (None, run.concurrency, per_rank):
        return "a concurrency that several workers share"
    return run.concurrency


def _document(setup: Setup, run: EngineRun, named: RunNames, concurrency: int) -> dict[str, Any]:
    parallel = setup.split(named.parallel)
    memory: dict[str, Any] = {"prefix_caching": False}
    document: dict[str, Any] = {
        "model": named.model,
        "engine": named.engine if setup.engine_version is None else f"{named.engine}@{setup.engine_version}",
        "cluster": {"accelerator": named.accelerator} | parallel,
        "memory": memory,
        "precision": {"weights": named.precision, "kv_cache": setup.kv_cache},
        "workload": {
            "requests": setup.requests(concurrency),
            "arrivals": {"name": "closed-loop", "concurrency": concurrency},
            "prompt_tokens": _length(run.prompt_tokens, setup.is_known),
            "output_tokens": _length(run.output_tokens, setup.is_known),
        },
    }
    if setup.kv_cache == "as weights":
        document["precision"]["kv_cache"] = "fp8" if named.precision.startswith(("fp8", "nvfp4")) else "bf16"
    batching = _batching(setup, concurrency, run.prompt_tokens, parallel.get("data_parallel", 1))
    if batching:
        document["scheduler"] = {"batching": batching}
    pricing = {
        "expert_kernels": setup.expert_kernels,
        "quantised_within": setup.quantised_within,
        "all_reduce_norm_bytes": setup.all_reduce_norm_bytes.get(parallel.get("tensor_parallel", 1)),
    }
    if stated := {name: value for name, value in pricing.items() if value is not None}:
        document["pricing"] = {"profile": "auto"} | stated
    host = {name: getattr(setup, name) for name in _HOST_SETTINGS}
    document["host"] = {name: value for name, value in host.items() if value is not None}
    if setup.exposed_host:
        document["host"] |= EXPOSED_HOST
    if setup.prose:
        document["host"]["per_prompt_token_s"] = PROSE_TOKEN_S
    if setup.gpu_memory_utilization is not None:
        memory["gpu_memory_utilization"] = setup.gpu_memory_utilization
    return document


def _batching(setup: Setup, concurrency: int, prompt_tokens: int, data_parallel_ranks: int) -> dict[str, Any]:
    """Settings of a scenario count for all data-parallel ranks; those of some engines for each."""
    if not load_engine(setup.engine).limits_per_data_parallel_rank:
        data_parallel_ranks = 1
    slots = setup.max_running_requests
    budget = setup.token_budget(concurrency, prompt_tokens)
    settings: dict[str, Any] = {
        "name": setup.batching,
        "max_running_requests": slots * data_parallel_ranks if isinstance(slots, int) else slots and concurrency,
        "max_batched_tokens": budget and budget * data_parallel_ranks,
        "receive_interval_steps": setup.receive_interval_steps,
    }
    if setup.receive_interval_steps is not None:  # the preset's own turns have no interval
        settings["name"] = settings["name"] or "chunked-prefill-first"
    if setup.waiting_prompts is not None:
        settings |= setup.waiting_prompts.model_dump()
    if setup.balanced_groups is not None and data_parallel_ranks > 1:
        settings |= {"name": "group-balanced"} | setup.balanced_groups.model_dump()
    return {name: value for name, value in settings.items() if value is not None}


def _plausible(setup: Setup, document: dict[str, Any]) -> list[dict[str, Any]]:
    """Setups that nobody rules out either: the preset's token budget, a host whose work is hidden if it was not, or is
    not if it was, and both.
    """
    batching = {key: value for key, value in document["scheduler"]["batching"].items() if key != "max_batched_tokens"}
    budget = {"scheduler": {"batching": batching}}
    host = document["host"] | EXPOSED_HOST
    if setup.exposed_host:
        host = {name: value for name, value in host.items() if name not in (*EXPOSED_HOST, "async_scheduling")}
    return [document | change for change in (budget, {"host": host}, budget | {"host": host})]


def _length(tokens: int, varied: bool) -> dict[str, Any]:
    """Lengths as InferenceX draws them; other rows state one length, and tools that keep to it."""
    if not varied:
        return {"name": "fixed", "tokens": tokens}
    return {"name": "uniform", "low": max(1, int(SHORTEST_SHARE * tokens)), "high": tokens}
