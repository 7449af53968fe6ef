"""Which constants were fitted on which measured rows, and how far off these rows still are."""

from collections.abc import Iterable

import numpy as np

from fidelity.case import Outcome

FITTED = (
    "Host constants of the engine presets (`simcore/engines/`), all on rows of a known harness at concurrency 4 with "
    "prompts of 1024 or 8192 tokens and outputs of 1024: vLLM's on Llama-3.1-70B on H200 (8 rows), TensorRT-LLM's on "
    "GPT-OSS-120B on B200 (8 rows), and on H200 under SGLang, whose other constants are those of the first two, what "
    "latent attention takes to launch on DeepSeek-V3 (2 rows) and how long linear attention of prompts waits for the "
    "host on Qwen3.5-397B-A17B (2 rows). On rows of an unknown harness, what vLLM's host takes in a step and for each "
    "request where it does not schedule ahead, as before 0.14: TPOT of vLLM 0.12 on Qwen3-32B on eight H100, 1024 "
    "tokens in and out, 8 and 128 clients (2 rows). That hosts of B200 launch kernels in three quarters of the time "
    "is inferred from the first two fits. Kernels are priced by measurements of kernels, all else is assumed; no "
    "constant has seen another row. Choices of structure are not blind: that tokens are routed with a mild skew, how "
    "many kernels an operator launches, that steps without a graph are bound by launches, that products are held to "
    "the rate of a loaded device, that engines schedule a step ahead and hide what they prepare for each request, "
    "that compiled layers launch without the modules around them, that Qwen3.5 is run as its checkpoint has "
    "projections and shared experts' gates, that a model of experts that was not measured takes the mean of its "
    "nearest, that prompts wait for each other where TensorRT-LLM's scripts have them do (for how many steps is what "
    "these say, or its defaults), and that the residual of norms, the embedding and the choice of tokens count were "
    "settled while looking at the errors of all rows of a known harness. So was, on the run of two RTX PRO 6000, that "
    "accelerators joined by PCIe alone reach each other through the host where a run's configuration describes a link "
    "of that rate; what such a transfer takes is fitted to collectives of other GPUs. How rows of an unknown harness "
    "were run, and what their bands leave open of it, was settled while looking at theirs."
)
"""Which constants were fitted on which rows of the files compared with here."""

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
    """Root mean square of log(simulated / measured) over the rows of a known harness that nothing was fitted on.

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
        f"On the {rows} rows that host constants were fitted on, the root mean square of log(simulated / measured) is "
        f"{ttft:.3f} for TTFT and {tpot:.3f} for TPOT, from which `STEP_ERROR` in `simcore/cost/assumptions.py` "
        f"is taken. On rows that nothing was fitted on it is, by engine, model and accelerator, {_range(predicted[0])} "
        f"for TTFT and {_range(predicted[1])} for TPOT: this is what bands must hold."
    )


def _range(residuals: list[float]) -> str:
    return f"{residuals[0]:.3f} to {residuals[-1]:.3f} (median {np.median(residuals):.3f})" if residuals else "unknown"
