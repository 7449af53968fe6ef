"""What each tenant was served by each time.

Service is prompt tokens of admitted requests, and output tokens delivered, each times its weight. Weights are those of
the virtual token counter by default: 1 for a prompt token, 2 for an output token. Service of a request's output is
taken to grow evenly from its first token to its last. All of it takes time in proportion to the requests and to the
questions, however many tenants there are.
"""

from collections.abc import Sequence

import numpy as np

from simcore.core.result import Columns
from simcore.metrics.arrays import Float64Array, Int64Array

PROMPT_WEIGHT, OUTPUT_WEIGHT = 1.0, 2.0


class SumsByTenant:
    """Amounts of tenants, each from a time on, and their sums up to any time."""

    def __init__(self, tenant: Int64Array, at_s: Float64Array, amounts: Float64Array) -> None:
        self._times_s = np.unique(at_s)
        self._width = len(self._times_s) + 1
        keys = tenant * self._width + np.searchsorted(self._times_s, at_s)
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._upto = np.concatenate(([0.0], np.cumsum(amounts[order])))

    def until(self, tenant: Int64Array, times_s: Float64Array) -> Float64Array:
        """The sum of the amounts of a tenant that came at or before a time, for pairs of both."""
        first = np.searchsorted(self._keys, tenant * self._width)
        passed = np.searchsorted(self._times_s, times_s, side="right")
        last = np.searchsorted(self._keys, tenant * self._width + passed)
        total: Float64Array = self._upto[last] - self._upto[first]
        return total


class TenantService:
    """Service of tenants, who go by numbers from 0 in the order of their ``names``, from the start to ``end_s``."""

    def __init__(self, requests: Columns, end_s: float) -> None:
        self.names, self.tenant = np.unique(requests["tenant"], return_inverse=True)
        self.end_s = end_s
        started = ~np.isnan(requests["first_token_s"])
        first_s, tokens = requests["first_token_s"][started], requests["output_tokens"][started]
        last_s = np.where(np.isnan(requests["end_s"][started]), end_s, requests["end_s"][started])
        at_once = last_s <= first_s
        rates = np.where(at_once, 0.0, (tokens - 1) / np.where(at_once, 1.0, last_s - first_s))
        whose = self.tenant[started]
        self.ramps = (
            np.concatenate((whose, whose)),
            np.concatenate((first_s, last_s)),
            OUTPUT_WEIGHT * np.concatenate((rates, -rates)),
        )
        """Of each change of a tenant's rate of service: who, when, and by how much per second."""
        admitted = ~np.isnan(requests["first_scheduled_s"])
        self.steps = (
            np.concatenate((self.tenant[admitted], whose)),
            np.concatenate((requests["first_scheduled_s"][admitted], first_s)),
            np.concatenate(
                (
                    PROMPT_WEIGHT * requests["prompt_tokens"][admitted],
                    OUTPUT_WEIGHT * np.where(at_once, np.maximum(tokens, 1), 1),
                )
            ),
        )
        """Of each piece of service that comes at once: to whom, when, and how much."""
        whose, at_s, change = self.ramps
        self._sums = SumsByTenant(*self.steps)
        self._rates = SumsByTenant(whose, at_s, change)
        self._offsets = SumsByTenant(whose, at_s, change * at_s)

    def until(self, tenant: Int64Array, times_s: Float64Array) -> Float64Array:
        """Service of a tenant up to a time, for pairs of both."""
        return self._sums.until(tenant, times_s) + self.ramped_until(tenant, times_s)

    def ramped_until(self, tenant: Int64Array, times_s: Float64Array) -> Float64Array:
        """The part of it that grows evenly."""
        return self._rates.until(tenant, times_s) * times_s - self._offsets.until(tenant, times_s)

    def totals(self) -> Float64Array:
        """Service of every tenant up to the end."""
        everybody = np.arange(len(self.names))
        return self.until(everybody, np.full(len(everybody), self.end_s))

    def most_served(self, count: int) -> Int64Array:
        """The tenants served most, so many at most, the first of the names first where they were served alike."""
        most: Int64Array = np.argsort(-self.totals(), kind="stable")[:count]
        return most

    def curves(self, tenants: Int64Array | Sequence[int], times_s: Float64Array) -> Float64Array:
        """Service of some tenants, a row each, up to each of the given times."""
        chosen = np.asarray(tenants, dtype=np.int64)
        pairs = np.repeat(chosen, len(times_s)), np.tile(times_s, len(chosen))
        return self.until(*pairs).reshape(len(chosen), len(times_s))
