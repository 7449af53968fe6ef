"""What a scheduler is set to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from policies.batching import Batching
from policies.capabilities import check_capabilities
from policies.ordering import Ordering
from policies.prediction import LengthPredictor
from policies.preemption import Preemption

PreemptionMode = Literal["recompute", "swap", "wait", "reject"]


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """The policies of a scheduler and its settings; a fresh one for each replica, since policies remember.

    ``window_tokens`` are the sliding windows of the model, whose context is counted. ``reserve_whole_prompt`` admits a
    request only if the blocks for all its known tokens are free, ``reserved_blocks`` only if the blocks reserved for
    more urgent levels then still are, ``watermark_blocks`` only if so many are, unless nobody runs. Where memory runs
    short, victims lose their memory by ``preemption_mode``, and with ``inherit_priority`` those who hold back a more
    urgent request are served first.

    With ``ends_late`` a step is planned before the result of the one before it is known. So who has got its last token
    is ending for one plan more: it keeps its slot and memory, but is not served again.

    Raises ``CapabilityError`` for a policy whose hooks and announcements do not go together.
    """

    ordering: Ordering
    batching: Batching
    preemption: Preemption
    window_tokens: tuple[int, ...] = ()
    reserve_whole_prompt: bool = True
    preemption_mode: PreemptionMode = "recompute"
    reserved_blocks: Mapping[int, int] = field(default_factory=dict)
    watermark_blocks: int = 0
    inherit_priority: bool = False
    ends_late: bool = False

    def __post_init__(self) -> None:
        for policy in (self.ordering, self.batching, *self.predictors):
            check_capabilities(type(policy))

    @property
    def predictors(self) -> tuple[LengthPredictor, ...]:
        """The length predictors that its policies ask."""
        return (*self.ordering.predictors, *self.preemption.predictors)
