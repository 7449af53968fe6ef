"""How far two runs with the same seed had the same requests."""

from dataclasses import dataclass

import numpy as np

from experiments.comparison.compared_metrics import RunRecord


@dataclass(frozen=True, slots=True)
class Pairing:
    """What a pair of runs has in common.

    ``same_requests`` is whether the lengths of all requests are equal one by one, ``same_arrivals`` whether they arrive
    at the same times. ``finished_in_one`` counts requests that one run finished and the other did not.
    """

    same_requests: bool
    same_arrivals: bool
    finished_in_one: int


def pair_up(first: RunRecord, second: RunRecord) -> Pairing:
    """Match the requests of two runs by their numbers; the prompts tell whether they are the same."""
    one, other = first.requests, second.requests
    same_requests = all(np.array_equal(one[name], other[name]) for name in ("request_id", "prompt_tokens"))
    if not same_requests:
        return Pairing(False, False, 0)
    finished_in_one = (one["state"] == "finished") != (other["state"] == "finished")
    return Pairing(True, np.array_equal(one["arrival_s"], other["arrival_s"]), int(finished_in_one.sum()))
