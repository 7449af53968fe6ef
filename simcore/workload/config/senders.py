"""Who sends the requests of a workload, as a user writes it."""

from collections import Counter
from math import fsum
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from simcore.workload.batch import LEAST_URGENT
from simcore.workload.config.section import LongerThanZero, Section, Text, Tokens

Priority = Annotated[int, Field(ge=0, le=LEAST_URGENT)]
_SHARES_TOLERANCE = 1e-6


class TenantShare(Section):
    """One of several tenants. It sends each request with the probability ``share``."""

    name: Text
    """The tenant, named once."""
    share: Annotated[float, Field(gt=0, le=1)]
    """Share of the requests, more than 0."""
    priority: Priority = 0
    """Level of its requests."""
    max_output_tokens: Tokens | None = None
    """Limit on its outputs."""
    first_token_timeout_s: LongerThanZero | None = None
    """Time after which its clients give up if no token has come, seconds."""
    timeout_s: LongerThanZero | None = None
    """Time after which its clients give up if the last token has not come, seconds."""


class SenderSection(Section):
    """Who sends the requests: one tenant, or several."""

    tenant: str = ""
    """Whose requests they are."""
    priority: Priority = 0
    """Level of the requests, at least 0. A lower one is more urgent."""
    max_output_tokens: Tokens | None = None
    """Limit that the client sets. A longer output ends there."""
    first_token_timeout_s: LongerThanZero | None = None
    """Time after which a client gives up if no token has come, seconds."""
    timeout_s: LongerThanZero | None = None
    """Time after which a client gives up if the last token has not come, seconds."""
    tenants: list[TenantShare] | None = None
    """Several tenants instead, to whom requests fall at random."""

    @field_validator("tenants")
    @classmethod
    def _shares_of_a_whole(cls, tenants: list[TenantShare] | None) -> list[TenantShare] | None:
        if tenants is None:
            return None
        name, times = Counter(tenant.name for tenant in tenants).most_common(1)[0] if tenants else ("", 0)
        if times > 1:
            raise ValueError(f"each tenant once, not {times} times {name!r}")
        whole = fsum(tenant.share for tenant in tenants)
        if abs(whole - 1) > _SHARES_TOLERANCE:
            raise ValueError(f"shares that add up to 1, not {whole:.6g}")
        return tenants

    @model_validator(mode="after")
    def _one_or_several(self) -> Self:
        alone = self.tenant or self.priority or self.max_output_tokens or self.first_token_timeout_s or self.timeout_s
        if self.tenants is not None and alone:
            raise ValueError(
                "either tenants, each with what it sends, or tenant, priority, max_output_tokens and timeouts"
            )
        return self

    @property
    def gives_up(self) -> bool:
        """Whether some client may give up."""
        return any(sender.first_token_timeout_s or sender.timeout_s for sender in (self, *(self.tenants or ())))
