"""From the recorder's integers to the two tables of a result: seconds, and NaN for what never came."""

import numpy as np

from simcore.core.clock import NS_PER_S
from simcore.core.request import UNSET
from simcore.core.result import Columns
from simcore.metrics.definitions import between_s, time_per_output_token_s
from simcore.metrics.samples import Rows, mean_of_samples, of_requests
from simcore.recording.recorder import STATES, Recorder


def request_table(recorder: Recorder, samples: int = 1) -> Columns:
    """One row per request, in order of arrival; each has so many samples."""
    raw = recorder.requests()
    tpot_s = time_per_output_token_s(raw["first_token_ns"], _last_token_ns(raw), raw["output_tokens"])
    if samples > 1:
        raw, tpot_s = of_requests(raw, samples), mean_of_samples(tpot_s, samples)
    arrival, first_token, end = raw["arrival_ns"], raw["first_token_ns"], raw["end_ns"].copy()
    last_token = _last_token_ns(raw)
    tpot_s[last_token == UNSET] = np.nan
    return {
        "request_id": raw["number"],
        "state": np.array(STATES)[raw["state"]],
        "reason": np.array(recorder.reasons)[raw["reason"]],
        "tenant": np.array([*recorder.tenants, ""])[raw["tenant"]],
        "priority": raw["priority"],
        "replica": raw["replica"],
        "prompt_tokens": raw["prompt_tokens"],
        "output_tokens": raw["output_tokens"],
        "cached_tokens": raw["cached_tokens"],
        "arrival_s": arrival / NS_PER_S,
        "first_scheduled_s": _seconds(raw["first_scheduled_ns"]),
        "first_token_s": _seconds(first_token),
        "end_s": _seconds(end),
        "queue_s": between_s(arrival, raw["first_scheduled_ns"]),
        "ttft_s": between_s(arrival, first_token),
        "tpot_s": tpot_s,
        "e2e_s": between_s(arrival, last_token),
        "preemptions": raw["preemptions"],
    }


def step_table(recorder: Recorder) -> Columns:
    """One row per run of like steps, in order of start, then of replica."""
    raw = recorder.steps()
    return {
        "replica": raw["replica"],
        "start_s": raw["start_ns"] / NS_PER_S,
        **{f"{name}_s": raw[f"{name}_ns"] / NS_PER_S for name in ("end", "first_step", "last_step")},
        **{name: column for name, column in raw.items() if name != "replica" and not name.endswith("_ns")},
    }


def _last_token_ns(raw: Rows) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.where(raw["state"] == STATES.index("finished"), raw["end_ns"], UNSET)


def _seconds(time_ns: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    seconds = time_ns / NS_PER_S
    seconds[time_ns == UNSET] = np.nan
    return seconds
