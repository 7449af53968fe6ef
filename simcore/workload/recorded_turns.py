"""Turns of recorded chats that wait for the answer before them."""

from pathlib import Path

import numpy as np

from simcore.core.errors import FileError
from simcore.workload.batch import Int64Array
from simcore.workload.sessions import FollowUps
from simcore.workload.traces.senders import NO_CHAT


def recorded_follow_ups(path: Path, chat: Int64Array, follows: Int64Array) -> FollowUps:
    """Who waits for whom among the requests of a trace at ``path``, in order of arrival.

    Request i is ``chat[i]`` and goes on from the answer to ``follows[i]``, which is NO_CHAT where it begins a chat. It
    begins one as well if that request is not among them, as at the start of a window. Raises FileError where two
    requests have one name, or one goes on from a later one.
    """
    place_of = dict(zip(chat.tolist(), range(len(chat)), strict=True))
    if len(place_of) < len(chat):
        raise FileError(path, "names two requests alike, expected a chat id of its own for each")
    before: list[int] = []
    after: list[int] = []
    session = np.arange(len(chat), dtype=np.int64)
    for place in np.flatnonzero(follows != NO_CHAT).tolist():
        parent = place_of.get(int(follows[place]))
        if parent is None:
            continue
        if parent >= place:
            raise FileError(path, f"request {place + 1} goes on from a later one, expected an earlier one")
        before.append(parent)
        after.append(place)
        session[place] = session[parent]
    pairs = np.array(before, dtype=np.int64), np.array(after, dtype=np.int64)
    numbers = np.unique(session, return_inverse=True)[1].astype(np.int64)
    return FollowUps.of_pairs(*pairs, np.zeros(len(chat), dtype=np.int64), numbers)
