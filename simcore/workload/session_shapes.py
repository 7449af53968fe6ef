"""How the requests of a session follow each other: a chain of turns, or a tree of agents.

Shapes are made for many sessions at once. A request's ``parent`` is the one whose prompt and answer its own prompt goes
on from; ``level`` counts the parents above it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from simcore.workload.contents import Int64Array, exclusive_sums
from simcore.workload.lengths import LengthDistribution
from simcore.workload.streams import random_stream

NO_PARENT = -1


@dataclass(frozen=True, slots=True)
class Shape:
    """Requests of successive sessions, one array element each, those of a session together and its first one first.

    ``before`` and ``after`` are pairs of requests of which the second waits for the first. ``joined`` marks pairs in
    which the second also has the answer of the first in its prompt, after that of its parent.
    """

    session: Int64Array
    parent: Int64Array
    level: Int64Array
    before: Int64Array
    after: Int64Array
    joined: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def __len__(self) -> int:
        return len(self.session)

    def up_to(self, count: int) -> "Shape":
        """The first ``count`` requests; no request precedes one that it waits for, so nothing is left hanging."""
        kept = self.after < count
        requests = slice(count)
        pairs = (self.before[kept], self.after[kept], self.joined[kept])
        return Shape(self.session[requests], self.parent[requests], self.level[requests], *pairs)


DrawShape = Callable[[int], Shape]
"""Given a number of sessions, the shapes of the next ones."""


class SessionShape(Protocol):
    """The law by which sessions get their shapes."""

    @property
    def most_requests(self) -> int:
        """The most requests that a session may have."""

    def start(self, seed: int) -> DrawShape:
        """The sequence of shapes that belongs to ``seed``, from its beginning."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A chain: each turn goes on from the one before."""

    turns: LengthDistribution
    most_requests: int

    def start(self, seed: int) -> DrawShape:
        """One draw a session."""
        random = random_stream(seed, "turns")

        def draw(sessions: int) -> Shape:
            turns = self.turns.quantile(random.random(sessions))
            session = np.repeat(np.arange(sessions, dtype=np.int64), turns)
            place = np.arange(len(session), dtype=np.int64)
            level = place - exclusive_sums(turns)[session]
            after = place[level > 0]
            parent = np.where(level > 0, place - 1, NO_PARENT)
            return Shape(session, parent, level, after - 1, after, np.zeros(len(after), dtype=np.bool_))

        return draw


@dataclass(frozen=True, slots=True)
class AgentTree:
    """A tree: each request down to ``depth`` levels below the first has ``fan_out`` children, sent when it has ended.

    With ``join`` each of these requests is taken up once more when all its children are done (their own joins
    included), with the answers of all of them.
    """

    fan_out: LengthDistribution
    depth: int
    join: bool
    most_requests: int

    def start(self, seed: int) -> DrawShape:
        """One draw a request that has children, level by level."""
        random = random_stream(seed, "fan_out")

        def draw(sessions: int) -> Shape:
            levels = [np.arange(sessions, dtype=np.int64)]
            parents = [np.full(sessions, NO_PARENT, dtype=np.int64)]
            session = [levels[0]]
            first = sessions
            for _ in range(self.depth):
                children = self.fan_out.quantile(random.random(len(levels[-1])))
                parents.append(np.repeat(levels[-1], children))
                session.append(np.repeat(session[-1], children))
                levels.append(np.arange(first, first + len(parents[-1]), dtype=np.int64))
                first += len(parents[-1])
            tree = _as_built(session, parents)
            return _session_by_session(_with_joins(tree, levels) if self.join else tree, self.depth)

        return draw


def _as_built(session: list[Int64Array], parents: list[Int64Array]) -> Shape:
    """The tree, level by level."""
    level = np.repeat(np.arange(len(parents)), [len(level) for level in parents])
    parent = np.concatenate(parents)
    after = np.flatnonzero(parent != NO_PARENT)
    joined = np.zeros(len(after), dtype=np.bool_)
    return Shape(np.concatenate(session), parent, level, parent[after], after, joined)


def _with_joins(tree: Shape, levels: list[Int64Array]) -> Shape:
    """The same, and after it a join for each request that has children, in the same order."""
    count, leaves = len(tree), levels[-1]
    inner = np.arange(count - len(leaves), dtype=np.int64)
    # What a child comes to: its join, or itself where it has no children.
    result = np.where(np.arange(count) < len(inner), np.arange(count) + count, np.arange(count))
    children = tree.after
    return Shape(
        np.concatenate((tree.session, tree.session[inner])),
        np.concatenate((tree.parent, inner)),
        np.concatenate((tree.level, tree.level[inner] + 1)),
        np.concatenate((tree.before, result[children])),
        np.concatenate((tree.after, tree.parent[children] + count)),
        np.concatenate((tree.joined, np.ones(len(children), dtype=np.bool_))),
    )


def _session_by_session(shape: Shape, depth: int) -> Shape:
    """Sorted by session, and within one so that all come after those that they wait for."""
    joins = np.zeros(len(shape), dtype=np.bool_)
    joins[shape.after[shape.joined]] = True
    # Joins come after the tree, the deepest first.
    order = np.lexsort((np.where(joins, 2 * depth + 1 - shape.level, shape.level), shape.session))
    place = np.empty(len(shape), dtype=np.int64)
    place[order] = np.arange(len(shape))
    parent = shape.parent[order]
    parent = np.where(parent == NO_PARENT, NO_PARENT, place[parent])
    pairs = (place[shape.before], place[shape.after], shape.joined)
    return Shape(shape.session[order], parent, shape.level[order], *pairs)
