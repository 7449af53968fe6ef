"""What the replicas of a run did with their time, and the steps that are typical of it."""

import numpy as np

from simcore.core.result import Result
from simcore.cost.breakdown import StepShape
from simcore.output.cluster_text import replica_count

TIME_NAMES = {
    "decode": "steps that decode alone",
    "mixed": "steps with prompts and decodes",
    "prefill": "steps with prompts alone",
    "idle": "idle",
}


def time_shares(result: Result) -> dict[str, float]:
    """The shares of all replicas' time until the run's end, by the keys of ``TIME_NAMES``; they add up to 1.

    Where batches of a pipeline overlap, steps may add up to more than the time there was; idle is then 0.
    """
    steps = result.steps
    spans_s = steps["end_s"] - steps["start_s"]
    prompts, decodes = steps["prefill_tokens"] > 0, steps["decoding_requests"] > 0
    spent = {
        "decode": float(spans_s[~prompts].sum()),
        "mixed": float(spans_s[prompts & decodes].sum()),
        "prefill": float(spans_s[prompts & ~decodes].sum()),
    }
    busy_s = sum(spent.values())
    whole_s = max(float(result.summary["run"]["simulated_s"]) * replica_count(result.scenario["cluster"]), busy_s)
    if not whole_s:
        return {**dict.fromkeys(spent, 0.0), "idle": 1.0}
    return {name: value / whole_s for name, value in spent.items()} | {"idle": 1 - busy_s / whole_s}


def step_shape(result: Result) -> tuple[StepShape, StepShape] | None:
    """The mean decode step of a run, each weighted by its time, and a step with its mean prompt; None without any."""
    steps, requests = result.steps, result.requests
    decoding = steps["decoding_requests"] > 0
    if not decoding.any():
        return None
    weights = (steps["end_s"] - steps["start_s"])[decoding]
    batch = float(np.average(steps["decoding_requests"][decoding], weights=weights))
    contexts = steps["context_tokens"][decoding] / steps["decoding_requests"][decoding]
    context = float(np.average(contexts, weights=weights))
    prompt = max(round(float(requests["prompt_tokens"].mean())), 1)
    return StepShape(max(round(batch), 1), max(round(context), 1)), StepShape(chunks=((prompt, 0),))
