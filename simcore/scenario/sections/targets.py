"""What a scenario measures, and what it asks of the service."""

from typing import Literal

from pydantic import ValidationInfo, field_validator

from simcore.workload.config.section import LongerThanZero, Seconds, Section

Percentile = Literal["p50", "p90", "p95", "p99", "p999"]


class Objectives(Section):
    """Service level objectives: a limit in seconds for a percentile, such as ``ttft_s: {p99: 2.0}``."""

    ttft_s: dict[Percentile, LongerThanZero] = {}
    """Limits of the time to first token, seconds."""
    tpot_s: dict[Percentile, LongerThanZero] = {}
    """Limits of the time per output token, seconds."""
    e2e_s: dict[Percentile, LongerThanZero] = {}
    """Limits of the time to the last token, seconds."""


class Measurement(Section):
    """Which requests are measured."""

    warmup_s: Seconds = 0.0
    """Requests that arrive earlier are not measured, seconds."""
    end_s: LongerThanZero | None = None
    """Time at which the run is cut off, seconds. By default it lasts until the last request has ended."""

    @field_validator("end_s")
    @classmethod
    def _after_warmup(cls, end_s: float | None, info: ValidationInfo) -> float | None:
        warmup_s = info.data.get("warmup_s", 0.0)
        if end_s is not None and end_s <= warmup_s:
            raise ValueError(f"more than the warmup_s of {warmup_s:g}")
        return end_s
