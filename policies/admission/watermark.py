"""Levels of KV memory."""

from dataclasses import dataclass

from policies.admission import Admission
from policies.bounds import check_counts
from policies.views import RequestView, ServiceView


@dataclass(frozen=True, slots=True)
class Watermark(Admission):
    """Let in less and less as KV memory fills up.

    Below ``low`` everyone is let in. From ``low`` on the least urgent are rejected (levels above ``keep_priority``),
    from ``high`` on long prompts too (over ``short_prompt_tokens``), and from ``critical`` on everyone.

    Source: own; named after the watermarks of page reclaim in the Linux kernel.
    """

    low: float = 0.7
    high: float = 0.85
    critical: float = 0.95
    keep_priority: int = 0
    short_prompt_tokens: int = 1024

    def __post_init__(self) -> None:
        check_counts(self, "keep_priority", "short_prompt_tokens", least=0)
        if not 0 <= self.low <= self.high <= self.critical <= 1:
            raise ValueError(
                f"low is {self.low}, high {self.high} and critical {self.critical}, expected rising shares from 0 to 1"
            )

    def rejects(self, request: RequestView, service: ServiceView, now_s: float) -> str | None:
        """What the level of the fullest replica says."""
        used = service.kv_used_share
        if used >= self.critical:
            return "KV memory is nearly full"
        if used >= self.high and request.prompt_tokens > self.short_prompt_tokens:
            return "KV memory is too full for a long prompt"
        if used >= self.low and request.priority > self.keep_priority:
            return "KV memory is too full for this priority"
        return None
