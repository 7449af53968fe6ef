"""The queue of one replica in groups, whose turns an ordering policy decides by what each has been served."""

from itertools import count

from policies.ordering import GroupOrdering
from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import to_s
from simcore.core.decode_pool import DecodePool
from simcore.core.request import UNSET, Request
from simcore.scheduling.step_time import StepTime
from simcore.scheduling.waiting_queue import RequestHeap


class Group:
    """The requests of one group on one replica: those that wait, and counts of what they hold and have been served.

    Output is counted without touching the requests: ``_offset`` is the sum, over members of the decode pool, of the
    pool's step at which their output would have been empty. So is time, by ``_time_offset``, the sum of what members
    need not be given of ``StepTime``.
    """

    __slots__ = (
        "_members",
        "_offset",
        "_origins",
        "_output_settled",
        "_pool",
        "_spent_s",
        "_time",
        "_time_offset",
        "heap",
        "name",
        "prompt_tokens_served",
        "running_requests",
    )

    def __init__(self, name: str, pool: DecodePool, time: StepTime) -> None:
        self.name = name
        self.heap = RequestHeap()
        self.running_requests = 0
        self.prompt_tokens_served = 0
        self._pool = pool
        self._members = 0
        self._origins = 0
        self._offset = 0
        self._output_settled = 0
        self._time = time
        self._time_offset = 0.0
        self._spent_s = 0.0

    @property
    def first(self) -> Request:
        """The waiting request that is next within the group."""
        return self.heap.entries[0][3]

    @property
    def context_tokens(self) -> int:
        """Tokens in KV memory that its decoding requests hold."""
        return self._members * self._pool.steps - self._origins

    @property
    def output_tokens_served(self) -> int:
        """Output tokens that its requests have got so far."""
        return self._output_settled + self._members * self._pool.steps - self._offset

    @property
    def service_s(self) -> float:
        """Seconds of steps that its requests have got, each step's divided among the tokens that it computed."""
        return self._spent_s + self._members * self._time.per_member_s - self._time_offset

    def prefilled(self, service_s: float) -> None:
        """Count the part of a step that went to the chunk of a prompt."""
        self._spent_s += service_s

    def sat_out(self, service_s: float) -> None:
        """A member of the pool had nothing of a step of which each token got so much."""
        self._time_offset += service_s

    def admitted(self, request: Request) -> None:
        """Count a request that now runs; its prompt is counted the first time only."""
        self.running_requests += 1
        if not request.preemptions:
            self.prompt_tokens_served += request.prompt_tokens

    def joined(self, request: Request, new_tokens: int = 1) -> None:
        """Count a request that now decodes; all its output but ``new_tokens`` just sampled was counted before."""
        self._members += 1
        self._origins += request.origin
        self._offset += request.origin + request.prompt_tokens - 1
        self._output_settled -= request.known_output_tokens - new_tokens
        self._time_offset += self._time.per_member_s

    def moved(self, steps: int) -> None:
        """A member's origin has moved on by ``steps``."""
        self._origins += steps
        self._offset += steps

    def left(self, request: Request, decoding: bool, finished: bool) -> None:
        """Count out a request that no longer runs; ``decoding`` if it was a member of the pool until now."""
        self.running_requests -= 1
        if decoding:
            self._members -= 1
            self._origins -= request.origin
            self._offset -= request.origin + request.prompt_tokens - 1
            self._output_settled += request.generated_tokens
            self._time_offset -= self._time.per_member_s
        elif finished:
            self._output_settled += 1


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
        name = self._ordering.group(request)
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
        group.heap.push(self._ordering.key(request, now_s), request)
        self.size += 1
        self.tokens += request.tokens_to_compute
        if group.name not in self._waiting:
            others = list(self._waiting.values())
            self._waiting[group.name] = group
            self._ordering.activated(group, others)

    def first(self, now_s: float) -> Request:
        """The first request of the group whose turn it is."""
        chosen = self.groups[self._ordering.choose(list(self._waiting.values()), now_s).name]
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
