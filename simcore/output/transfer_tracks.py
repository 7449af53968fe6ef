"""The transfers of a run as tracks of a timeline, one for each link."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from simcore.core.result import Columns

FIRST_TID = 2


def link_names(transfers: Columns) -> list[str]:
    """The links, in the order of their first transfers."""
    return list(dict.fromkeys(transfers["link"].tolist())) if transfers else []


def track_names(transfers: Columns, pid: int, replica: int) -> Iterator[dict[str, Any]]:
    """Events that name the tracks of a replica."""
    own = set(transfers["link"][transfers["replica"] == replica].tolist()) if transfers else ()
    for tid, link in enumerate(link_names(transfers), start=FIRST_TID):
        if link in own:
            yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": link}}


def transfer_events(transfers: Columns, count: int, first_pid: int) -> Iterator[dict[str, Any]]:
    """The first ``count`` transfers, in order of their start."""
    if not transfers:
        return
    tids = {link: tid for tid, link in enumerate(link_names(transfers), start=FIRST_TID)}
    first = np.argsort(transfers["start_s"], kind="stable")[:count]
    names = ("replica", "link", "kind", "start_s", "end_s", "size_bytes")
    columns = (transfers[name][first].tolist() for name in names)
    for replica, link, kind, start_s, end_s, size_bytes in zip(*columns, strict=True):
        start_us = round(start_s * 1e6)
        yield {
            "ph": "X",
            "name": kind,
            "ts": start_us,
            "dur": round(end_s * 1e6) - start_us,
            "pid": first_pid + replica,
            "tid": tids[link],
            "args": {"size_bytes": size_bytes},
        }
