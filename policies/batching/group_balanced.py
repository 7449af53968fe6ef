"""Prompts that wait for each other, where data groups run in step."""

from dataclasses import dataclass, field
from typing import ClassVar

from policies.batching import Batching, StepLimits
from policies.bounds import check_counts, check_range
from policies.horizon import FOREVER
from policies.views import ReplicaView, RequestView


@dataclass(slots=True)
class GroupBalanced(Batching):
    """In-flight batching of whole prompts that start in all data groups at once.

    Groups that share experts run in step: a prompt of one holds up the decodes of all. A request belongs to the group
    with the fewest as it comes. Prompts wait until each of the ``data_groups`` has one, and ``gathering_steps`` more;
    or until some group has nobody who runs. Every ``max_waiting_steps`` steps in which that was not so, whoever waits
    is let in. A group has its even part of the token budget, which no prompt may be longer than.

    TensorRT-LLM calls these steps ``timeout_iters`` and ``batching_wait_iters``.

    Source: TensorRT-LLM, ``attention_dp_config.enable_balance`` (``tensorrt_llm/_torch/pyexecutor/py_executor.py``).
    """

    whole_prompts: ClassVar[bool] = True

    data_groups: int = 1
    max_waiting_steps: int = 50
    gathering_steps: int = 10
    max_batched_tokens: int = 8192
    max_running_requests: int = 2048
    _running: list[int] = field(init=False, repr=False)
    _waiting: list[int] = field(init=False, repr=False)
    _room_tokens: list[int] = field(init=False, repr=False)
    _group_of: dict[int, int] = field(default_factory=dict, init=False, repr=False)
    _waits_since: int = field(default=0, init=False, repr=False)
    _gathers_since: int | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_range(self, 1, 1024, "data_groups")
        check_counts(self, "max_waiting_steps", "max_batched_tokens", "max_running_requests")
        check_counts(self, "gathering_steps", least=0)
        self._running = [0] * self.data_groups
        self._waiting = [0] * self.data_groups
        self._room_tokens = [0] * self.data_groups

    @property
    def longest_prompt_tokens(self) -> int:
        """The token budget of a group."""
        return self.max_batched_tokens // self.data_groups

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """The same but for whether those who wait are let in."""
        somebody_waits = replica.next_blocks is not None
        if somebody_waits:
            self._deal(replica.waiting_requests)
            self._room_tokens = [self.longest_prompt_tokens - running for running in self._running]
        return StepLimits(
            self.max_batched_tokens,
            self.max_running_requests,
            self.max_batched_tokens,
            admit=somebody_waits and (self._is_due(replica.decode_steps) or replica.decoding_requests == 0),
            whole_prompts=True,
            stable_steps=1 if somebody_waits else FOREVER,
        )

    def accepts(self, request: RequestView, running: int) -> bool:
        """Whether a group with somebody waiting has room for the prompt; it goes to the one with the most."""
        self.ended(request)  # it may have run before
        groups = [group for group, waiting in enumerate(self._waiting) if waiting]
        group = max(groups, key=self._room_tokens.__getitem__, default=0)
        if self._room_tokens[group] < request.prompt_tokens:
            return False
        self._room_tokens[group] -= request.prompt_tokens
        self._waiting[group] = max(self._waiting[group] - 1, 0)
        self._running[group] += 1
        self._group_of[request.number] = group
        return True

    def ended(self, request: RequestView) -> None:
        """Its group has one less."""
        group = self._group_of.pop(request.number, None)
        if group is not None:
            self._running[group] -= 1

    def _deal(self, waiting: int) -> None:
        """Deal those out who came since, and forget those who left."""
        groups = range(self.data_groups)
        for _ in range(waiting - sum(self._waiting)):
            self._waiting[min(groups, key=lambda group: self._running[group] + self._waiting[group])] += 1
        for _ in range(sum(self._waiting) - waiting):
            self._waiting[max(groups, key=self._waiting.__getitem__)] -= 1

    def _is_due(self, now: int) -> bool:
        """Whether prompts start at this decode step."""
        if not all(self._running):
            self._waits_since = now
            return True
        if not all(self._waiting):
            waited = now - self._waits_since
            return waited > 0 and waited % self.max_waiting_steps == 0
        self._waits_since = now
        if self._gathers_since is None:
            self._gathers_since = now
        if now - self._gathers_since < self.gathering_steps:
            return False
        self._gathers_since = None
        return True
