"""In which order waiting requests are admitted."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from policies.horizon import FOREVER
from policies.prediction import LengthPredictor
from policies.views import GroupView, RequestView


class Ordering(ABC):
    """Sorts the queue: the request with the smallest key is admitted first; ties keep arrival order.

    A key is taken when its request enters the queue, on arrival or after a preemption; one that ``changes_with_time``
    is taken anew for all that wait in every step that is planned. With ``preemptive``, a waiting request for which
    there is no room displaces the running one with the greatest key, if that is greater than its own; the keys of
    running requests are then taken anew in every step that is planned.
    """

    paired_hooks: ClassVar[Mapping[str, str]] = {
        "admitted": "hears_admitted",
        "ended": "hears_ended",
        "tokens_until_rise": "foresees_rises",
    }
    hears_admitted: ClassVar[bool] = False
    """Whether ``admitted`` is told of requests that leave the queue to run."""
    hears_ended: ClassVar[bool] = False
    """Whether ``ended`` is told of requests that are gone for good."""
    foresees_rises: ClassVar[bool] = False
    """Whether ``tokens_until_rise`` says how long keys of running requests stay as they are."""
    preemptive: ClassVar[bool] = False
    falls_by_token: ClassVar[bool] = False
    """Whether the first part of a running request's key falls by one with each token that it generates."""
    fixed_keys: ClassVar[bool] = False
    """Whether keys depend on nothing but what is known of a request as it arrives, and nothing else is noted when it
    enters the queue, so that it may enter it later."""
    requeues_last: bool = False
    """Whether requests of equal keys stand as they entered the queue, the preempted ones anew; else as they arrived."""
    changes_with_time: bool = False
    """Whether the key of a waiting request changes with the time at which it is taken."""
    stable_steps: int = FOREVER
    """Steps for which the order stands while no request arrives, finishes or is preempted."""

    @abstractmethod
    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The request's place."""

    def tokens_until_rise(self, request: RequestView) -> int:
        """Output tokens after which the key of a running request may be greater than now; ``FOREVER`` for never.

        Until then the key must not change, or fall as ``falls_by_token`` says, and depend on nothing but the request.
        An ordering that can promise this spares the walk over the batch that takes all keys anew in every step.
        """
        return 1

    @property
    def promotes_after_s(self) -> float | None:
        """Seconds in the queue after which a request is promoted; None for never."""
        return None

    def promoted(self, request: RequestView) -> None:
        """Take note that a request has waited so long; its key is then taken anew, and must not be greater."""

    def admitted(self, request: RequestView, now_s: float) -> None:
        """Take note that a request left the queue to run."""

    def ended(self, request: RequestView) -> None:
        """Take note that a request is gone for good: complete, dropped, or given up by its client."""

    @property
    def predictors(self) -> tuple[LengthPredictor, ...]:
        """The length predictors that it asks, which must be told of arrivals and finishes."""
        return ()


class GroupOrdering(Ordering):
    """Sorts requests in groups: each group by its own keys, and whose turn it is by what groups have been served.

    The turn is decided when a request is to be admitted, so the work is by the number of groups, not of requests.
    """

    def group(self, request: RequestView) -> str:
        """The name of the request's group, by default its tenant."""
        return request.tenant

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The request's place within its group, by default by arrival."""
        return (request.arrival_s,)

    def activated(self, group: GroupView, others: Sequence[GroupView]) -> None:
        """Take note that a request waits in ``group``, where none did; ``others`` are the groups that wait too."""

    @abstractmethod
    def choose(self, groups: Sequence[GroupView], now_s: float) -> GroupView:
        """The group whose first request is next; ``groups`` are those that wait, in a fixed order, never empty.

        Asked as often as anybody wants to know, so it changes nothing that matters: only ``admitted`` tells that the
        request named last was really taken.
        """


class CacheAwareOrdering(Ordering):
    """Sorts the queue anew in every step that is planned, by what the prefix cache holds of each request."""

    by_branch: ClassVar[bool] = False
    """Whether requests are sorted by ``place_on`` where the cache is a tree whose scheduler shows its branches."""
    defers_shared: ClassVar[bool] = False
    """Whether such a scheduler lets a request wait that shares an uncached prefix with one before it, which then will
    be cached."""
    look_ahead: int
    """With more waiting requests than this, the order is that of arrival."""

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """Its place where the cache is not looked at: by arrival."""
        return (request.arrival_s,)

    @abstractmethod
    def rank(self, request: RequestView, cached_tokens: int, now_s: float) -> tuple[float, ...]:
        """The request's place, given how many of its tokens are cached; the smallest is admitted first."""

    def place_on(self, branch: Sequence[tuple[int, int]]) -> tuple[float, ...]:
        """The request's place by the branch of the tree that its cached prefix is.

        Of each node from the root down, ``branch`` has how many waiting requests have it in their prefixes, and which
        of its parent's children it is.
        """
        raise NotImplementedError
