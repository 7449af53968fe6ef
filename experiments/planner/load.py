"""What a workload asks of a service: how many requests, of which lengths, and for how long it must be watched."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simcore.core.clock import NS_PER_S
from simcore.workload import ClosedLoop, Sessions, Workload, first_requests, has_contents
from simcore.workload.batch import Int64Array

_LOOKED_AT = 20_000
"""Requests from which lengths and the rate are taken."""
_STEADY = ("poisson", "gamma", "constant")
"""Arrivals that are alike at all times, so that more of them tell more."""


@dataclass(frozen=True, slots=True)
class Load:
    """The requests of a workload, as many as were looked at.

    ``rate_per_s`` is None where requests wait for answers. ``steady`` tells that more requests like these can be drawn.
    ``shares_content`` tells that some may have tokens in common.
    """

    prompt_tokens: Int64Array
    output_tokens: Int64Array
    rate_per_s: float | None
    steady: bool
    shares_content: bool

    @classmethod
    def of(cls, workload: Workload, section: Mapping[str, Any]) -> "Load":
        """The load of a workload and of the section of a scenario that it was made from."""
        requests = first_requests(workload, _LOOKED_AT)
        waits = isinstance(workload, ClosedLoop | Sessions)
        span_s = (int(requests.arrival_ns[-1]) - int(requests.arrival_ns[0])) / NS_PER_S if len(requests) else 0.0
        rate = (len(requests) - 1) / span_s if span_s and not waits else None
        steady = rate is not None and is_steady(section)
        return cls(requests.prompt_tokens, requests.output_tokens, rate, steady, has_contents(workload))

    @property
    def mean_prompt_tokens(self) -> float:
        """Of all requests."""
        return float(self.prompt_tokens.mean())

    @property
    def mean_output_tokens(self) -> float:
        """Of all requests."""
        return float(self.output_tokens.mean())

    @property
    def decode_context_tokens(self) -> float:
        """The mean context of a decode, over all decodes of all requests."""
        decodes = np.maximum(self.output_tokens - 1, 0)
        total = float(decodes.sum())
        contexts = self.prompt_tokens + (self.output_tokens + 1) / 2
        return float((decodes * contexts).sum() / total) if total else self.mean_prompt_tokens

    def prompt_at(self, share: float) -> int:
        """The longest prompt such that at least ``1 - share`` of the requests have one as long."""
        return _reached(self.prompt_tokens, share)

    def context_at(self, share: float) -> int:
        """The same of the context at the first decode."""
        return _reached(self.prompt_tokens[self.output_tokens > 1] + 1, share)


def _reached(lengths: Int64Array, share: float) -> int:
    if not len(lengths):
        return 0
    beyond = int((1 - share) * len(lengths) + 1e-9) + 1  # one more than may miss a limit
    return int(np.sort(lengths)[-min(beyond, len(lengths))])


def is_steady(section: Mapping[str, Any]) -> bool:
    """Whether a workload's section describes arrivals that are alike at all times and do not wait for answers."""
    if "streams" in section:
        return all(is_steady(stream) for stream in section["streams"])
    arrivals = section.get("arrivals") or {}
    return arrivals.get("name") in _STEADY and section.get("session") is None


def lasting(section: Mapping[str, Any], duration_s: float) -> dict[str, Any]:
    """A steady workload's section with requests for so many seconds.

    Those of a shorter duration are the first of a longer one, to the bit.
    """
    if "streams" in section:
        return {**section, "streams": [lasting(stream, duration_s) for stream in section["streams"]]}
    return {key: value for key, value in section.items() if key != "requests"} | {"duration_s": duration_s}
