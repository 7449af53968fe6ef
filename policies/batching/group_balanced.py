"""Prompts that wait for each other, where data-parallel ranks run in step."""

from dataclasses import dataclass, field
from typing import ClassVar

from policies.batching import Batching, StepLimits
from policies.bounds import check_counts, check_range
from policies.horizon import FOREVER
from policies.views import ReplicaView, RequestView


@dataclass(slots=True)
class GroupBalanced(Batching):
    """In-flight batching of whole prompts that start on all data-parallel ranks at once.

    Ranks that share experts run in step, so a prompt of one holds up the decodes of all. A request that waits is taken
    by the rank with the fewest. Prompts wait until each of the ``data_parallel_ranks`` has one and a slot for it, and
    then ``gathering_steps`` more. They do not wait while some rank has no running request. After ``max_waiting_steps``
    steps of waiting all are let in. A rank has its even part of the slots and of the token budget. No prompt may be
    longer than that part.

    TensorRT-LLM calls these steps ``timeout_iters`` and ``batching_wait_iters``. Its limits of tokens and requests are
    those of one rank; the limits here are ``data_parallel_ranks`` times as many. Its ranks have KV memory of their own.
    Here all ranks share it, and no rank has a prompt while there is no room for the next.

    Source: TensorRT-LLM, ``attention_dp_config.enable_balance`` (``tensorrt_llm/_torch/pyexecutor/py_executor.py``).
    """

    filters_admission: ClassVar[bool] = True
    hears_ended: ClassVar[bool] = True
    whole_prompts: ClassVar[bool] = True

    data_parallel_ranks: int = 1
    max_waiting_steps: int = 50
    gathering_steps: int = 10
    max_batched_tokens: int = 8192
    max_running_requests: int = 2048
    _running: list[int] = field(init=False, repr=False)
    _room_tokens: list[int] = field(init=False, repr=False)
    _most_each: int = field(default=0, init=False, repr=False)
    _rank_of: dict[int, int] = field(default_factory=dict, init=False, repr=False)
    _waits_since: int = field(default=0, init=False, repr=False)
    _gathered_steps: int = field(default=0, init=False, repr=False)
    _gathered_at: int = field(default=-1, init=False, repr=False)

    def __post_init__(self) -> None:
        check_range(self, 1, 1024, "data_parallel_ranks")
        check_counts(self, "max_waiting_steps", "max_running_requests")
        check_counts(self, "max_batched_tokens", least=self.data_parallel_ranks)
        check_counts(self, "gathering_steps", least=0)
        self._running = [0] * self.data_parallel_ranks
        self._room_tokens = [0] * self.data_parallel_ranks

    @property
    def longest_prompt_tokens(self) -> int:
        """The token budget of a rank."""
        return self.max_batched_tokens // self.data_parallel_ranks

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """The same but for whether those who wait are let in."""
        blocks = replica.next_blocks
        due = False
        if blocks is not None:
            self._look(replica)
            room = blocks <= replica.free_blocks
            due = self._is_due(replica.decode_steps, replica.queued_requests, room) or replica.decoding_requests == 0
        return StepLimits(
            self.max_batched_tokens,
            self.max_running_requests,
            self.max_batched_tokens,
            admit=due,
            whole_prompts=True,
            stable_steps=FOREVER if blocks is None else 1,
        )

    def accepts(self, request: RequestView, running: int) -> bool:
        """Whether there is room for the prompt in the rank that has the most, of those that have not their part."""
        self.ended(request)  # it may have been accepted before its prefix was loaded
        ranks = [rank for rank, count in enumerate(self._running) if count < self._most_each]
        rank = max(ranks, key=self._room_tokens.__getitem__, default=None)
        if rank is None or self._room_tokens[rank] < request.prompt_tokens:
            return False
        self._room_tokens[rank] -= request.prompt_tokens
        self._running[rank] += 1
        self._rank_of[request.number] = rank
        return True

    def ended(self, request: RequestView) -> None:
        """Its rank has one less."""
        rank = self._rank_of.pop(request.number, None)
        if rank is not None:
            self._running[rank] -= 1
            self._room_tokens[rank] += 1

    def _look(self, replica: ReplicaView) -> None:
        """See what room there is in each rank."""
        if replica.running_requests == 0:  # those whose prefix is being loaded were accepted, and do not run
            self._running = [0] * self.data_parallel_ranks
            self._rank_of.clear()
        self._room_tokens = [self.longest_prompt_tokens - running for running in self._running]
        even = -(-(sum(self._running) + replica.queued_requests) // self.data_parallel_ranks)
        self._most_each = min(even, self._slots)

    @property
    def _slots(self) -> int:
        """Those of a rank, rounded up."""
        return -(-self.max_running_requests // self.data_parallel_ranks)

    def _is_due(self, now: int, queued: int, room: bool) -> bool:
        """Whether prompts start at this decode step, where there is ``room`` in memory for the next."""
        if not all(self._running):
            self._waits_since = now
            return True
        most = max(self._running)
        # those with the most get one when the others have caught up
        missing = sum(most - running or 1 for running in self._running) - queued
        if missing > 0 or most >= self._slots or not room:
            waited = now - self._waits_since
            return waited > 0 and waited % self.max_waiting_steps == 0
        self._waits_since = now
        if now == self._gathered_at:
            return False
        if self._gathered_steps < self.gathering_steps:
            self._gathered_steps += 1
            self._gathered_at = now
            return False
        self._gathered_steps = 0
        return True
