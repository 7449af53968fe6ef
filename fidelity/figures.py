"""The figures of a simulated run that measurements are compared with, by key.

| key | figure |
|---|---|
| ``ttft_s.mean``, ``tpot_s.p99``, ``e2e_s.p50``, ... | a statistic of a latency, seconds |
| ``requests_per_s``, ``output_tokens_per_s``, ``total_tokens_per_s`` | throughput |
| ``makespan_s`` | from the first arrival to the last token |
| ``step_s:P+D`` | a step with P prompt tokens and D decoding requests, the median over all such steps |
"""

from collections.abc import Iterable

import numpy as np

from simcore.core.result import Result

CONDITIONS = {
    "host_share": "share of busy time that is host overhead",
    "kv_peak_share": "most KV memory in use",
    "preemptions": "preemptions per request",
    "decode_batch": "mean requests decoding per step",
    "uncalibrated_share": "share of time priced outside the calibrated range",
}
"""What is noted of a simulated run beside its figures."""


def figures(result: Result, keys: Iterable[str]) -> dict[str, float | None]:
    """The asked figures of a run; None for one that the run does not have."""
    return {key: _figure(result, key) for key in keys}


def conditions(result: Result) -> dict[str, float | None]:
    """What the run was like, by the keys of ``CONDITIONS``."""
    summary = result.summary
    use, kv = summary["utilisation"], summary["kv"]
    return {
        "host_share": use["host_share_of_busy"],
        "kv_peak_share": kv["peak_used_blocks"] / kv["blocks_per_replica"],
        "preemptions": summary["preemptions"]["total"] / max(summary["counts"]["arrived"], 1),
        "decode_batch": use["mean_decode_batch"],
        "uncalibrated_share": summary["pricing"]["outside_calibrated_range"],
    }


def bands(result: Result, keys: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Uncertainty bands of the figures for which the summary has one.

    They stand beside the figure, as ``summary["metrics"]["ttft_s"]["band"]["mean"]``, low and high; a run that was not
    asked for them has none.
    """
    metrics, rates = result.summary["metrics"], result.summary["throughput"]
    found = {}
    for key in keys:
        metric, _, statistic = key.partition(".")
        figures, name = (metrics.get(metric, {}), statistic) if statistic else (rates, key)
        band = figures.get("band", {}).get(name)
        if band is not None:
            found[key] = (float(band[0]), float(band[1]))
    return found


def _figure(result: Result, key: str) -> float | None:
    if key.startswith("step_s:"):
        prompt_tokens, _, decoding = key.removeprefix("step_s:").partition("+")
        return _step_s(result, int(prompt_tokens), int(decoding))
    if key == "makespan_s":
        finished = result.requests["state"] == "finished"
        if not finished.any():
            return None
        return float(result.requests["end_s"][finished].max() - result.requests["arrival_s"].min())
    metric, _, statistic = key.partition(".")
    if statistic:
        value: float | None = result.summary["metrics"][metric][statistic]
    else:
        value = result.summary["throughput"][metric]
    return value


def _step_s(result: Result, prompt_tokens: int, decoding: int) -> float | None:
    steps = result.steps
    alike = (steps["prefill_tokens"] == prompt_tokens) & (steps["decoding_requests"] == decoding)
    if not alike.any():
        return None
    durations_s = (steps["end_s"][alike] - steps["start_s"][alike]) / steps["steps"][alike]
    return float(np.median(np.repeat(durations_s, steps["steps"][alike])))
