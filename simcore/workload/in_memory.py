"""Workloads that are held in memory: a trace that was read, several streams that were merged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simcore.core.errors import InputError
from simcore.workload.batch import NO_OUTPUT_LIMIT, NO_TIMEOUT_NS, Int64Array, RequestBatch
from simcore.workload.contents import Contents, one_after_another, unlike_any_other
from simcore.workload.synthetic import BATCH_REQUESTS

_MOST_IDENTITIES = 2**62


@dataclass(frozen=True, slots=True)
class InMemoryOpenLoop:
    """All requests at once, so that whatever is wrong with one shows before anything runs.

    They take 24 to 64 bytes each, and contents 16 and as much for each run.

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

    No content of a part is that of another: see ``told_apart``.
    """
    return concatenate(told_apart(parts)).at(order_of_arrival(parts))


def order_of_arrival(parts: Sequence[RequestBatch]) -> NDArray[np.intp]:
    """The order in which ``merge`` puts the requests of all parts, which before stand one after another."""
    return np.argsort(np.concatenate([part.arrival_ns for part in parts]), kind="stable")


def concatenate(parts: Sequence[RequestBatch]) -> RequestBatch:
    """The requests of all parts, one after another.

    A column that any part has is filled with its default for the others; contents that are not known are taken to be
    unlike any other. Tenants of one name become one tenant.
    """
    sizes = [len(part) for part in parts]
    tenant, tenants = _tenants(parts)
    return RequestBatch(
        np.concatenate([part.arrival_ns for part in parts]),
        np.concatenate([part.prompt_tokens for part in parts]),
        np.concatenate([part.output_tokens for part in parts]),
        tenant,
        tenants,
        _filled([part.priority for part in parts], sizes, 0),
        _filled([part.max_output_tokens for part in parts], sizes, NO_OUTPUT_LIMIT),
        _contents(parts),
        _filled([part.first_token_timeout_ns for part in parts], sizes, NO_TIMEOUT_NS),
        _filled([part.timeout_ns for part in parts], sizes, NO_TIMEOUT_NS),
    )


def told_apart(parts: Sequence[RequestBatch]) -> list[RequestBatch]:
    """The parts with token identities that no two of them share.

    Raises InputError where they are more than 64 bits hold, as traces with large ``hash_ids`` can come to.
    """
    apart, first = [], 0
    for part in parts:
        if part.contents is not None:
            own = part.contents
            part = replace(part, contents=own.shifted(first))
            first += own.end(part.output_tokens)
            if first > _MOST_IDENTITIES:
                raise InputError("workload.streams", len(parts), "streams with fewer token identities together")
        apart.append(part)
    return apart


def _contents(parts: Sequence[RequestBatch]) -> Contents | None:
    known = [part.contents.end(part.output_tokens) for part in parts if part.contents is not None]
    if not known:
        return None
    first, filled = max(known), []
    for part in parts:
        contents = part.contents
        if contents is None:
            contents = unlike_any_other(part.prompt_tokens, part.output_tokens, first)
            first = contents.end(part.output_tokens)
        filled.append(contents)
    return one_after_another(filled)


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
