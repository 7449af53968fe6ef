"""Iteration-level batching, prompts first."""

from dataclasses import dataclass, field
from typing import ClassVar

from policies.batching import Batching, StepLimits
from policies.bounds import check_counts
from policies.horizon import FOREVER
from policies.views import ReplicaView


@dataclass(slots=True)
class PrefillFirst(Batching):
    """As soon as a waiting prompt fits, run a step of whole prompts alone; decode otherwise.

    Batches form anew in every step; prompts before decodes and never cut, as vLLM V0 does by default. Decodes pause
    meanwhile. With ``receive_interval_steps`` the scheduler looks for new requests in every so-many-th decode step only
    (and after every step of prompts, and when nobody runs), as SGLang's ``--scheduler-recv-interval`` has it: it saves
    the host the asking, and lets requests wait.

    Source: Orca (Yu et al., OSDI 2022); vLLM V0, prompts first; SGLang, the interval.
    """

    whole_prompts: ClassVar[bool] = True

    max_batched_tokens: int = 8192
    max_running_requests: int = 256
    receive_interval_steps: int = 1
    _received_at: int = field(default=0, init=False, repr=False)
    _prefilled: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        check_counts(self, "max_running_requests", "max_batched_tokens", "receive_interval_steps")

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """Prompts alone if the next fits and its time has come, decodes alone if not."""
        if self._prefilled or not replica.decoding_requests:
            self._received_at = replica.decode_steps
        passed = (replica.decode_steps - self._received_at) % self.receive_interval_steps
        blocks = replica.next_blocks
        room = replica.running_requests < self.max_running_requests
        prefill = passed == 0 and blocks is not None and room and blocks <= replica.free_blocks
        self._prefilled = prefill
        return StepLimits(
            self.max_batched_tokens,
            self.max_running_requests,
            self.max_batched_tokens,
            decode=not prefill,
            admit=prefill,
            whole_prompts=True,
            stable_steps=self.receive_interval_steps - passed if passed and replica.waiting_requests else FOREVER,
        )
