"""Prompts that go on from earlier ones: a turn has in its prompt all of the session so far, answers included."""

from dataclasses import replace

import numpy as np

from simcore.workload.batch import RequestBatch
from simcore.workload.contents import Contents, Int64Array, Pieces, one_after_another, pieced_together, pieces_of
from simcore.workload.session_shapes import Shape


def grown(requests: RequestBatch, shape: Shape) -> RequestBatch:
    """The requests of sessions with their whole prompts, where so far each has only its own new tokens.

    A prompt is that of its parent, the parent's answer, the answers that it joins, and the new tokens.
    """
    if requests.contents is None:
        raise ValueError("requests of sessions without contents")
    by_level = np.argsort(shape.level, kind="stable")
    levels = np.split(by_level, np.cumsum(np.bincount(shape.level))[:-1])
    place_in_level = np.empty(len(shape), dtype=np.int64)
    for level in levels:
        place_in_level[level] = np.arange(len(level))
    joins = _Answers.joined(requests, shape)
    above: Contents = requests.contents.at(levels[0])
    whole = [above]
    for level in levels[1:]:
        parent = shape.parent[level]
        new = requests.contents.at(level)
        count = np.arange(len(level), dtype=np.int64)
        answers = Pieces(count, requests.contents.output_first[parent], requests.output_tokens[parent])
        pieces = (pieces_of(above.at(place_in_level[parent])), answers, joins.of(level), pieces_of(new))
        above = pieced_together(pieces, new.output_first)
        whole.append(above)
    place = np.empty(len(shape), dtype=np.intp)
    place[by_level] = np.arange(len(shape))
    contents = one_after_another(whole).at(place)
    return replace(requests, prompt_tokens=contents.prompt_tokens, contents=contents)


class _Answers:
    """The answers that each request joins, as pieces in order of those who join."""

    def __init__(self, who: Int64Array, first: Int64Array, tokens: Int64Array) -> None:
        self._who, self._first, self._tokens = who, first, tokens

    @classmethod
    def joined(cls, requests: RequestBatch, shape: Shape) -> "_Answers":
        if requests.contents is None:
            raise ValueError("requests of sessions without contents")
        before, who = shape.before[shape.joined], shape.after[shape.joined]
        order = np.lexsort((before, who))
        before = before[order]
        return cls(who[order], requests.contents.output_first[before], requests.output_tokens[before])

    def of(self, requests: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Pieces:
        """Those that the given requests join, their owners counted in that order."""
        starts, ends = np.searchsorted(self._who, requests), np.searchsorted(self._who, requests, side="right")
        owner = np.repeat(np.arange(len(requests), dtype=np.int64), ends - starts)
        found = np.flatnonzero(np.isin(self._who, requests))
        return Pieces(owner, self._first[found], self._tokens[found])
