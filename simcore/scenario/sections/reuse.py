"""What a scenario keeps in KV memory beyond a request, and of a request."""

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from simcore.scenario.sections.bounds import Count, Policy, Share
from simcore.workload.config.section import LongerThanZero, Section, Text
from simcore.workload.lengths import MAX_TOKENS


class PrefixCache(Section):
    """What the prefix cache keeps, and for whom."""

    index: Literal["hash", "radix"] = "hash"
    """How blocks are found: by chained hashes as in vLLM (``hash``), or in a tree as in SGLang (``radix``)."""
    eviction: Policy = {"name": "lru"}
    """Policy that says which cached block is given up first when memory is needed."""
    share_between_tenants: bool = False
    """Whether one tenant's requests may find what another's left."""
    salt: str = ""
    """Runs with different salts find nothing of each other."""
    expires_after_s: LongerThanZero | None = None
    """How long a block that no request holds can still be found, seconds."""
    warm_up_requests: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0
    """The prompts of the first requests of the workload, so many, are in the cache from the start."""
    pinned_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0
    """Of each of these prompts so many first tokens, rounded down to blocks, are never given up."""
    state_interval_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] = 256
    """Of a model with linear attention: states are kept at multiples of so many tokens, which are whole blocks."""
    kept_states: Count | None = None
    """Of such a model: states kept for others to go on from. By default as many as may run, at most 256."""
    tenant_shares: dict[Text, Share] = {}
    """Shares of all KV memory that named tenants have for themselves alone: ``{gold: 0.5}``."""

    @field_validator("tenant_shares")
    @classmethod
    def _no_more_than_all(cls, shares: dict[str, float]) -> dict[str, float]:
        if sum(shares.values()) > 1:
            raise ValueError(f"shares that add up to at most 1, not {sum(shares.values()):g}")
        return shares


class Retention(Section):
    """What is kept of a request in memory: all, or in every layer no more than stated."""

    window_tokens: Count | None = None
    """Keep the last tokens, so many."""
    sink_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] | None = None
    """Keep so many first tokens beside a window (StreamingLLM), rounded up to blocks. By default 4."""
    budget_tokens: Count | None = None
    """Keep so many tokens, wherever they are (H2O). Not beside a window."""

    @field_validator("sink_tokens")
    @classmethod
    def _beside_a_window(cls, tokens: int | None, info: ValidationInfo) -> int | None:
        if tokens is not None and info.data.get("window_tokens", 0) is None:
            raise ValueError("nothing without window_tokens, beside which the first tokens stay")
        return tokens

    @field_validator("budget_tokens")
    @classmethod
    def _one_of_them(cls, tokens: int | None, info: ValidationInfo) -> int | None:
        if tokens is not None and info.data.get("window_tokens") is not None:
            raise ValueError("nothing beside window_tokens, as a request keeps a window or a budget")
        return tokens
