"""The requests of one group on one replica, and what they have been served."""

from simcore.core.decode_pool import DecodePool
from simcore.core.request import ReadOnlyRequest, Request
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
        "view",
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
        self.view = ReadOnlyGroup(self)

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


class ReadOnlyGroup:
    """A group as policies see it (``policies.views.GroupView``): to be read, and no more."""

    __slots__ = ("_group",)

    def __init__(self, group: Group) -> None:
        self._group = group

    @property
    def name(self) -> str:
        """What the requests have in common."""
        return self._group.name

    @property
    def first(self) -> ReadOnlyRequest:
        """The waiting request that is next within the group."""
        return ReadOnlyRequest(self._group.first)

    @property
    def running_requests(self) -> int:
        """Its requests that hold KV memory."""
        return self._group.running_requests

    @property
    def context_tokens(self) -> int:
        """Tokens in KV memory that its decoding requests hold."""
        return self._group.context_tokens

    @property
    def prompt_tokens_served(self) -> int:
        """Prompt tokens of its requests admitted so far."""
        return self._group.prompt_tokens_served

    @property
    def output_tokens_served(self) -> int:
        """Output tokens that its requests have got so far."""
        return self._group.output_tokens_served

    @property
    def service_s(self) -> float:
        """Seconds of steps that its requests have got."""
        return self._group.service_s
