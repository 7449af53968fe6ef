"""Who sends a request: its tenant, how urgent it is, the limit that it sets on the output, and its patience."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simcore.workload.batch import NO_OUTPUT_LIMIT, NO_TIMEOUT_NS, RequestBatch
from simcore.workload.streams import random_stream
from simcore.workload.transformed import Transform


@dataclass(frozen=True, slots=True)
class Sender:
    """A tenant, and what all of its requests have in common: see ``RequestBatch``."""

    tenant: str = ""
    priority: int = 0
    max_output_tokens: int = NO_OUTPUT_LIMIT
    first_token_timeout_ns: int = NO_TIMEOUT_NS
    timeout_ns: int = NO_TIMEOUT_NS


@dataclass(frozen=True, slots=True)
class Senders:
    """Those who send a workload's requests: each request is one's with the probability of its share.

    ``shares`` add up to 1. What is the default of every sender leaves a request as it is.
    """

    senders: tuple[Sender, ...]
    shares: tuple[float, ...]

    def start(self, seed: int) -> Transform:
        """The sequence of senders that belongs to ``seed``, from its beginning."""
        random = random_stream(seed, "tenants")
        bounds = np.cumsum(self.shares)[:-1]  # the last sender takes what rounding leaves
        tenants = tuple(sender.tenant for sender in self.senders)
        defaults = Sender()
        stated = {
            name: np.array([getattr(sender, name) for sender in self.senders], dtype=np.int64)
            for name in ("priority", "max_output_tokens", "first_token_timeout_ns", "timeout_ns")
            if any(getattr(sender, name) != getattr(defaults, name) for sender in self.senders)
        }

        def label(requests: RequestBatch) -> RequestBatch:
            chosen = np.searchsorted(bounds, random.random(len(requests)), side="right")
            columns: dict[str, Any] = {}
            if any(tenants):
                columns |= {"tenant": chosen.astype(np.int64, copy=False), "tenants": tenants}
            columns |= {name: values[chosen] for name, values in stated.items()}
            return replace(requests, **columns).cut_to_limits()

        return label
