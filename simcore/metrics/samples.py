"""Requests that ask for several outputs to one prompt, from the rows of their samples."""

import numpy as np
from numpy.typing import NDArray

from policies.horizon import FOREVER
from simcore.core.request import UNSET
from simcore.recording.recorder import FINISHED, REJECTED, UNFINISHED

Rows = dict[str, NDArray[np.int64]]


def of_requests(samples: Rows, per_request: int) -> Rows:
    """One row per request from the recorder's rows, which are one per sample, ``per_request`` in a row.

    A request gets its first token with that of any sample, and is finished once all samples are: it is rejected if any
    is, which does not stop the others, and else unfinished if any is. Its output is that of all samples together; of
    its prompt so much was cached as for the sample that found least.
    """
    by_request = {name: column.reshape(-1, per_request) for name, column in samples.items()}
    rows = {name: column[:, 0] for name, column in by_request.items()}
    state = by_request["state"]
    rejected, unfinished = ((state == kind).any(axis=1) for kind in (REJECTED, UNFINISHED))
    rows["number"] = rows["number"] // per_request
    rows["state"] = np.where(rejected, REJECTED, np.where(unfinished, UNFINISHED, FINISHED))
    rows["reason"] = by_request["reason"].max(axis=1)
    for name in ("first_scheduled_ns", "first_token_ns"):
        rows[name] = _earliest(by_request[name])
    rows["end_ns"] = np.where(~rejected & unfinished, UNSET, by_request["end_ns"].max(axis=1))
    for name in ("output_tokens", "preemptions"):
        rows[name] = by_request[name].sum(axis=1)
    scheduled = by_request["first_scheduled_ns"] != UNSET
    cached = np.where(scheduled, by_request["cached_tokens"], FOREVER).min(axis=1)
    rows["cached_tokens"] = np.where(scheduled.any(axis=1), cached, 0)
    return rows


def mean_of_samples(values: NDArray[np.float64], per_request: int) -> NDArray[np.float64]:
    """The mean over the samples of each request that have a value, NaN where none has."""
    by_request = values.reshape(-1, per_request)
    counts = (~np.isnan(by_request)).sum(axis=1)
    sums = np.nansum(by_request, axis=1)
    means: NDArray[np.float64] = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return means


def _earliest(times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    earliest = np.where(times_ns == UNSET, FOREVER, times_ns).min(axis=1)
    return np.where(earliest == FOREVER, UNSET, earliest)
