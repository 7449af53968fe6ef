"""What tenants are served while they compete, and their fair shares of that.

A tenant competes between two successive times if it has requests waiting at both; service counts while at least two
tenants do. What one gains over a stretch is a difference of two sums. What all together gain between two times is added
up over the changes of their rates of service, and over the beginnings and ends of the stretches. So the work grows with
the requests, not with tenants times times.
"""

from dataclasses import dataclass

import numpy as np

from simcore.core.result import Columns
from simcore.metrics.arrays import Float64Array, Int64Array, Mask
from simcore.metrics.tenant_service import TenantService


@dataclass(frozen=True, slots=True)
class Stretches:
    """Spans between successive times over which tenants have requests waiting: whose, the first, and past the last.

    They are in order of tenants, then of time; those of one tenant do not touch.
    """

    tenant: Int64Array
    first: Int64Array
    end: Int64Array

    def competing(self, spans: int) -> Int64Array:
        """How many tenants compete in each span."""
        changes = np.bincount(self.first, minlength=spans + 1) - np.bincount(self.end, minlength=spans + 1)
        return np.cumsum(changes)[:spans].astype(np.int64)

    def hold(self, tenant: Int64Array, span: Int64Array) -> Mask:
        """Whether a tenant competes in a span, for pairs of both."""
        width = int(max(self.end.max(initial=0), span.max(initial=0))) + 1
        last = np.searchsorted(self.tenant * width + self.first, tenant * width + span, side="right") - 1
        found = np.zeros(len(tenant), dtype=np.bool_)
        known = (last >= 0) & (span >= 0)
        stretch = last[known]
        found[known] = (self.tenant[stretch] == tenant[known]) & (span[known] < self.end[stretch])
        return found


def stretches(requests: Columns, tenant: Int64Array, times_s: Float64Array) -> Stretches:
    """Where each tenant has requests waiting for their first step at both ends of a span."""
    until_s = np.where(np.isnan(requests["first_scheduled_s"]), requests["end_s"], requests["first_scheduled_s"])
    until_s = np.where(np.isnan(until_s), np.inf, until_s)
    points = len(times_s)
    # Who waits is counted at times, so that what happens between two counts from the later one on.
    came, went = (np.searchsorted(times_s, at_s) for at_s in (requests["arrival_s"], until_s))
    keys = np.concatenate((tenant * (points + 1) + came, tenant * (points + 1) + went))
    change = np.concatenate((np.ones(len(came), dtype=np.int64), np.full(len(went), -1)))
    at, place = np.unique(keys, return_inverse=True)
    waiting = np.cumsum(np.bincount(place, weights=change, minlength=len(at)).astype(np.int64))
    before = np.concatenate(([0], waiting[:-1]))
    begins, ends = at[(waiting > 0) & (before == 0)], at[(waiting == 0) & (before > 0)]
    whose, first, end = begins // (points + 1), begins % (points + 1), ends % (points + 1) - 1
    long_enough = end > first
    return Stretches(whose[long_enough], first[long_enough], end[long_enough])


def relative_service(
    service: TenantService, waiting: Stretches, times_s: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Each tenant's service while it competes with others, and its fair share of that."""
    tenants, spans = len(service.names), len(times_s) - 1
    competing = waiting.competing(spans)
    alone = competing == 1

    def gained(tenant: Int64Array, first: Int64Array, end: Int64Array) -> Float64Array:
        return service.until(tenant, times_s[end]) - service.until(tenant, times_s[first])

    gains = gained(waiting.tenant, waiting.first, waiting.end)
    own = np.bincount(waiting.tenant, weights=gains, minlength=tenants).astype(np.float64)
    # Who competes alone in a span is the sum of all who do.
    whose = np.bincount(waiting.first, weights=waiting.tenant, minlength=spans + 1)
    whose -= np.bincount(waiting.end, weights=waiting.tenant, minlength=spans + 1)
    lonely = np.flatnonzero(alone)
    owner = np.rint(np.cumsum(whose)[lonely]).astype(np.int64)
    own -= np.bincount(owner, weights=gained(owner, lonely, lonely + 1), minlength=tenants)
    equal = np.where(competing >= 2, _gained_together(service, waiting, times_s) / np.maximum(competing, 1), 0.0)
    upto = np.concatenate(([0.0], np.cumsum(equal)))
    shares = upto[waiting.end] - upto[waiting.first]
    fair = np.bincount(waiting.tenant, weights=shares, minlength=tenants).astype(np.float64)
    return own, fair


def _gained_together(service: TenantService, waiting: Stretches, times_s: Float64Array) -> Float64Array:
    """What all who compete in a span are served in it together."""
    spans = len(times_s) - 1
    whose, at_s, amounts = service.steps
    span = np.searchsorted(times_s, at_s) - 1
    within = waiting.hold(whose, span)
    steps = np.bincount(span[within], weights=amounts[within], minlength=spans)
    # What grows evenly: changes of the gain from one span to the next, then the first gain of a stretch and the last.
    whose, at_s, rates = service.ramps
    span = np.clip(np.searchsorted(times_s, at_s, side="right") - 1, 0, spans - 1)
    at_s = np.clip(at_s, times_s[0], times_s[-1])
    changes = np.zeros(spans + 2)
    for later, amount in ((0, rates * (times_s[span + 1] - at_s)), (1, rates * (at_s - times_s[span]))):
        inside = waiting.hold(whose, span + later) & waiting.hold(whose, span + later - 1)
        changes += np.bincount((span + later)[inside], weights=amount[inside], minlength=spans + 2)

    def ramped(first: Int64Array) -> Float64Array:
        until = service.ramped_until(waiting.tenant, times_s[first + 1])
        return until - service.ramped_until(waiting.tenant, times_s[first])

    changes += np.bincount(waiting.first, weights=ramped(waiting.first), minlength=spans + 2)
    changes -= np.bincount(waiting.end, weights=ramped(waiting.end - 1), minlength=spans + 2)
    together: Float64Array = steps + np.cumsum(changes)[:spans]
    return together
