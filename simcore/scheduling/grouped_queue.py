"""The queue of one replica in groups, whose turns an ordering policy decides by what each has been served."""

from itertools import count

from policies.ordering import GroupOrdering
from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import to_s
from simcore.core.decode_pool import DecodePool
from simcore.core.request import UNSET, ReadOnlyRequest, Request
from simcore.scheduling.group import Group
from simcore.scheduling.step_time import StepTime


class GroupedQueue:
    """Heaps by group; the ordering policy chooses among the groups that wait."""

    __slots__ = ("_chosen", "_ordering", "_pool", "_tickets", "_time", "_waiting", "groups", "size", "tokens")

    def __init__(self, ordering: GroupOrdering, pool: DecodePool) -> None:
        self._ordering = ordering
        self._pool = pool
        self._time = StepTime()
        self.groups: dict[str, Group] = {}
        self._waiting: dict[str, Group] = {}
        self._chosen: Group | None = None
        self._tickets = count()
        self.size = self.tokens = 0

    def group_of(self, request: Request) -> Group:
        """The group of a request, made when first asked for."""
        name = self._ordering.group(ReadOnlyRequest(request))
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = Group(name, self._pool, self._time)
        return group

    def took(self, plan: BatchPlan, elapsed_ns: int) -> None:
        """Take note, before anybody finishes, how long the steps of a plan took."""
        if not plan.chunks and not plan.stalled:
            self._time.decoded(elapsed_ns, plan.decoding)
            return
        per_token_s = to_s(elapsed_ns) / (plan.decoding + plan.prefill_tokens)
        if plan.decoding:
            self._time.add(per_token_s)
            for request in plan.stalled:
                self.group_of(request).sat_out(per_token_s)
        for request, tokens, _ in plan.chunks:
            self.group_of(request).prefilled(tokens * per_token_s)

    def push(self, request: Request, now_s: float) -> None:
        """Enter a new or a preempted request."""
        group = self.group_of(request)
        request.ticket = next(self._tickets)
        group.heap.push(self._ordering.key(ReadOnlyRequest(request), now_s), request)
        self.size += 1
        self.tokens += request.tokens_to_compute
        if group.name not in self._waiting:
            others = [other.view for other in self._waiting.values()]
            self._waiting[group.name] = group
            self._ordering.activated(group.view, others)

    def first(self, now_s: float) -> Request:
        """The first request of the group whose turn it is."""
        chosen = self.groups[self._ordering.choose([group.view for group in self._waiting.values()], now_s).name]
        self._chosen = chosen
        return chosen.first

    @property
    def first_key(self) -> tuple[float, ...]:
        """The key, within its group, of the request that ``first`` has just named."""
        if self._chosen is None:
            raise AssertionError("first_key without first")
        return self._chosen.heap.entries[0][0]

    def pop(self) -> Request:
        """Take out the request that ``first`` has just named."""
        group = self._chosen
        if group is None:
            raise AssertionError("pop without first")
        request = group.heap.pop()
        self.size -= 1
        self.tokens -= request.tokens_to_compute
        if not group.heap.entries:
            del self._waiting[group.name]
        self._chosen = None
        return request

    def remove(self, request: Request) -> None:
        """Take out a request that waits, wherever it stands."""
        group = self.group_of(request)
        self.size -= 1
        self.tokens -= request.tokens_to_compute
        request.ticket = UNSET
        group.heap.discard()
        if not group.heap.entries:
            del self._waiting[group.name]
        self._chosen = None

    def next_promotion_s(self) -> float | None:
        """Never: whose turn it is depends on what groups were served."""
        return None

    def heads(self) -> list[Request]:
        """The first request of each group that waits."""
        return [group.first for group in self._waiting.values()]
