"""Workloads that are held in memory: a trace that was read, several streams that were merged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simcore.workload.batch import NO_OUTPUT_LIMIT, Int64Array, RequestBatch
from simcore.workload.synthetic import BATCH_REQUESTS


@dataclass(frozen=True, slots=True)
class InMemoryOpenLoop:
    """All requests at once (24 to 48 bytes each), so that whatever is wrong with one shows before anything runs.

    ``notices`` are sentences that a user should see: what was left out of a trace or put in order.
    """

    requests: RequestBatch
    notices: tuple[str, ...] = ()
    batch_requests: int = BATCH_REQUESTS

    def batches(self) -> Iterator[RequestBatch]:
        """The requests in order of arrival."""
        for start in range(0, len(self.requests), self.batch_requests):
            yield self.requests.at(slice(start, start + self.batch_requests))


def merge(parts: Sequence[RequestBatch]) -> RequestBatch:
    """The requests of all parts in order of arrival; those of one nanosecond in the order of the parts.

    A column that any part has is filled with its default for the others. Tenants of one name become one tenant.
    """
    arrival_ns = np.concatenate([part.arrival_ns for part in parts])
    sizes = [len(part) for part in parts]
    tenant, tenants = _tenants(parts)
    one_after_another = RequestBatch(
        arrival_ns,
        np.concatenate([part.prompt_tokens for part in parts]),
        np.concatenate([part.output_tokens for part in parts]),
        tenant,
        tenants,
        _filled([part.priority for part in parts], sizes, 0),
        _filled([part.max_output_tokens for part in parts], sizes, NO_OUTPUT_LIMIT),
    )
    return one_after_another.at(np.argsort(arrival_ns, kind="stable"))


def _filled(columns: Sequence[Int64Array | None], sizes: Sequence[int], default: int) -> Int64Array | None:
    if all(column is None for column in columns):
        return None
    filled = [
        np.full(size, default, dtype=np.int64) if column is None else column
        for column, size in zip(columns, sizes, strict=True)
    ]
    return np.concatenate(filled)


def _tenants(parts: Sequence[RequestBatch]) -> tuple[Int64Array | None, tuple[str, ...]]:
    """Each request's tenant, and the names of all tenants in the order in which the parts name them."""
    if all(part.tenant is None for part in parts):
        return None, ()
    places: dict[str, int] = {}
    columns = []
    for part in parts:
        own, names = (part.tenant, part.tenants) if part.tenant is not None else (np.zeros(len(part), np.int64), ("",))
        columns.append(np.array([places.setdefault(name, len(places)) for name in names], dtype=np.int64)[own])
    return np.concatenate(columns), tuple(places)
