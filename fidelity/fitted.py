"""Which constants were fitted on which measured rows, and how far off these rows still are."""

from collections.abc import Iterable

import numpy as np

from fidelity.case import Outcome

FITTED = (
    "Host constants of `vllm-v1`: Llama-3.1-70B on H200 (8 InferenceX rows).",
    "Host constants of `trtllm`: GPT-OSS-120B on B200 (8 InferenceX rows).",
    "Launches of latent attention under `sglang`: DeepSeek-V3 on H200 (2 InferenceX rows). Its other host constants "
    "are those of the first two presets.",
    "The wait of linear attention for the host under `sglang`: Qwen3.5-397B-A17B on H200 (2 InferenceX rows).",
    "What vLLM's host takes in a step and for each request where it does not schedule ahead, as before 0.14: TPOT of "
    "vLLM 0.12 on Qwen3-32B on eight H100 at 8 and 128 clients (2 other rows).",
    "How fast hosts of B200 launch kernels: inferred from the first two.",
)
"""Which constants were fitted on which measured rows.

InferenceX rows are at concurrency 4, with prompts of 1024 or 8192 tokens and outputs of 1024.
"""
CHOSEN = (
    "Tokens are routed with a mild skew.",
    "The number of kernels that an operator launches.",
    "Steps without a CUDA graph are bound by launches.",
    "GEMMs are held to the rate of a loaded device.",
    "Engines schedule a step ahead, which hides what they prepare for each request.",
    "Compiled layers launch without the modules around them.",
    "Qwen3.5 runs with the projections and the gates of shared experts that its checkpoint has.",
    "An MoE model whose experts were not measured takes the mean of its nearest.",
    "Prompts wait for each other where TensorRT-LLM's scripts say so, for as many steps as these or its defaults say.",
    "The residual of norms, the embedding and the choice of tokens count.",
    "Accelerators joined by PCIe alone reach each other through the host, where a run's configuration describes a link "
    "of that rate. This was seen on the run of two RTX PRO 6000. Such transfers are fitted to collectives of other "
    "GPUs.",
)
"""What was decided about the structure of the simulator while errors of rows were in view."""

_SETUPS = (
    ("vllm-v1", "llama-3.1-70b", "h200-sxm"),
    ("trtllm", "gpt-oss-120b", "b200"),
    ("sglang", "deepseek-v3", "h200-sxm"),
    ("sglang", "qwen3.5-397b-a17b", "h200-sxm"),
)


def is_fitted(outcome: Outcome) -> bool:
    """Whether a row is one of those that ``FITTED`` names."""
    labels = outcome.case.labels
    setup = labels["engine"], labels["model"], labels["accelerator"]
    alike = labels["harness"] == "known" and labels["concurrency"] == "4"
    return alike and labels["lengths"] in ("1024/1024", "8192/1024") and setup in _SETUPS


def residual(outcomes: Iterable[Outcome], key: str) -> float | None:
    """Root mean square of log(simulated / measured) of a figure over the fitted rows; None without any."""
    errors = [error for outcome in outcomes if is_fitted(outcome) and (error := outcome.error(key)) is not None]
    return float(np.sqrt(np.mean(np.log1p(errors) ** 2))) if errors else None


def predicted_residuals(outcomes: Iterable[Outcome], key: str) -> list[float]:
    """Root mean square of log(simulated / measured) over the InferenceX rows that nothing was fitted on.

    One for each engine, model and accelerator, in ascending order: what a setup that no constant has seen is off by.
    """
    groups: dict[tuple[str, ...], list[float]] = {}
    for outcome in outcomes:
        labels, error = outcome.case.labels, outcome.error(key)
        if labels["harness"] == "known" and error is not None and not is_fitted(outcome):
            setup = labels["engine"], labels["model"], labels["accelerator"]
            groups.setdefault(setup, []).append(error)
    return sorted(float(np.sqrt(np.mean(np.log1p(errors) ** 2))) for errors in groups.values())


def fitted_note(outcomes: Iterable[Outcome]) -> str:
    """What fitted rows say of errors beside those of kernels and host, as a sentence; nothing without such rows."""
    outcomes = list(outcomes)
    ttft, tpot = (residual(outcomes, key) for key in ("ttft_s.mean", "tpot_s.mean"))
    predicted = [predicted_residuals(outcomes, key) for key in ("ttft_s.mean", "tpot_s.mean")]
    if ttft is None or tpot is None:
        return ""
    rows = sum(map(is_fitted, outcomes))
    return (
        "Errors here are the root mean square of log(simulated / measured). "
        f"On the {rows} rows that host constants were fitted on they are {ttft:.3f} for TTFT and {tpot:.3f} for TPOT. "
        "`STEP_ERROR` in `simcore/cost/assumptions.py` is taken from these. "
        "On InferenceX rows that nothing was fitted on they are, by engine, model and accelerator, "
        f"{_range(predicted[0])} for TTFT and {_range(predicted[1])} for TPOT."
    )


def _range(residuals: list[float]) -> str:
    return f"{residuals[0]:.3f} to {residuals[-1]:.3f} (median {np.median(residuals):.3f})" if residuals else "unknown"
