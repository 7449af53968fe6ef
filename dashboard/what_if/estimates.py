"""What can be said of a setup without simulating it: does the model fit, how fast is it alone, how fast could it be."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simcore.build.explanation import Explanation, explain_step
from simcore.build.memory_report import memory_report
from simcore.build.simulation import Simulation
from simcore.core.errors import InputError, ServetwinError
from simcore.cost.breakdown import StepShape
from simcore.workload import ClosedLoop, Sessions, Workload, mean_lengths
from simcore.workload.batch import RequestBatch

_ALONE = ("workload", "slo", "measurement")


@dataclass(frozen=True, slots=True)
class Estimates:
    """Figures of one setup, of requests of the workload's mean lengths.

    Memory is of one GPU, in bytes. ``alone_ttft_s`` and ``alone_tpot_s`` are those of a single request, simulated;
    None where the setup allows no such request. Bounds are what datasheet peaks allow: no kernel is faster, and host
    and links are not in them. ``most_tokens_per_s`` is the bound of all replicas with as many requests as fit.
    ``error`` is the median error of kernel prices held out of their fits, weighted by their shares of a decode step;
    None where no price is a fit. ``measured_share`` is the share of that step that measured kernels price.
    """

    requests: int
    prompt_tokens: int
    output_tokens: int
    device_bytes: int
    weight_bytes: int
    other_bytes: int
    kv_bytes: int
    requests_at_once: int
    bounded_by: str
    alone_ttft_s: float | None
    alone_tpot_s: float | None
    least_ttft_s: float
    least_tpot_s: float
    most_tokens_per_s: float
    error: float | None
    measured_share: float
    kernels: str


def estimate(simulation: Simulation) -> Estimates:
    """The estimates of a prepared simulation, in some tens of milliseconds."""
    if (pools := simulation.scenario.cluster.pools) is not None:
        raise InputError("cluster.pools", [pool.name for pool in pools], "none on this page, where replicas are alike")
    prompt, output = mean_lengths(simulation.workload)
    longest = simulation.max_context_tokens
    prompt = min(prompt, max(longest - output, 1))
    report = memory_report(simulation.memory, simulation.workload, longest)
    stage = max(report.stages, key=lambda terms: terms["weight_bytes"])
    at_once = int(report.limit["requests"])
    context = min(prompt + output // 2, longest)
    decode = explain_step(simulation, StepShape(1, context))
    full = explain_step(simulation, StepShape(max(at_once, 1), context))
    prefill = explain_step(simulation, StepShape(chunks=((prompt, 0),)))
    ttft_s, tpot_s = _alone(simulation, prompt, output)
    return Estimates(
        requests=request_count(simulation.workload),
        prompt_tokens=prompt,
        output_tokens=output,
        device_bytes=stage["device_bytes"],
        weight_bytes=stage["weight_bytes"],
        other_bytes=stage["usable_bytes"] - stage["weight_bytes"] - stage["kv_bytes"],
        kv_bytes=stage["kv_bytes"],
        requests_at_once=at_once,
        bounded_by=report.limit["by"],
        alone_ttft_s=ttft_s,
        alone_tpot_s=tpot_s,
        least_ttft_s=least_seconds(prefill),
        least_tpot_s=least_seconds(decode),
        most_tokens_per_s=at_once * simulation.scenario.cluster.replicas / least_seconds(full),
        error=_held_out_error(decode),
        measured_share=sum(operator.seconds for operator in decode.operators if operator.errors) / decode.seconds,
        kernels=decode.kernels,
    )


def least_seconds(step: Explanation) -> float:
    """What a step takes at the datasheet's peaks: of each operator its arithmetic or its traffic, whichever is longer.

    The roofline of Williams, Waterman and Patterson (CACM, 2009), without any efficiency.
    """
    return sum(
        max(operator.flops / step.peak_flops_per_s, operator.bytes / step.peak_bytes_per_s)
        for operator in step.operators
    )


def request_count(workload: Workload) -> int:
    """How many requests a workload has, as far as that is known before it runs."""
    return sum(map(len, _batches(workload)))


def _batches(workload: Workload) -> list[RequestBatch]:
    return [workload.requests] if isinstance(workload, ClosedLoop | Sessions) else list(workload.batches())


def _held_out_error(step: Explanation) -> float | None:
    fitted = [operator for operator in step.operators if operator.errors is not None]
    seconds = sum(operator.seconds for operator in fitted)
    if not seconds:
        return None
    return sum(operator.seconds * operator.errors.median for operator in fitted if operator.errors) / seconds


def _alone(simulation: Simulation, prompt: int, output: int) -> tuple[float | None, float | None]:
    """TTFT and TPOT of one request that finds the service idle, from a simulation of it."""
    document = simulation.scenario.document()
    own = {key: value for key, value in document.items() if key not in _ALONE}
    try:
        result = Simulation.prepare(own | {"workload": _one_request(prompt, output)}, Path()).run()
    except ServetwinError:  # of what is said of tenants, levels or warm-up that a single request does not have
        return None, None
    metrics: Mapping[str, Any] = result.summary["metrics"]
    return metrics["ttft_s"]["mean"], metrics["tpot_s"]["mean"]


def _one_request(prompt: int, output: int) -> dict[str, Any]:
    return {
        "requests": 1,
        "arrivals": {"name": "constant", "rate_per_s": 1.0},
        "prompt_tokens": {"name": "fixed", "tokens": prompt},
        "output_tokens": {"name": "fixed", "tokens": output},
    }
