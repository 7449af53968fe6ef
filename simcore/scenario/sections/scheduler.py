"""The policies of a scenario's schedulers."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from simcore.scenario.sections.bounds import Policy, with_whole_keys
from simcore.workload.config.section import Section


class Preemption(Section):
    """What happens when KV memory runs short: who gives way, and how."""

    mode: Literal["recompute", "swap", "wait", "reject"] = "recompute"
    """How a request gives way: ``recompute``, ``swap``, ``reject``, or not at all (``wait``)."""
    victim: Policy = {"name": "latest"}
    """Policy that picks who gives way."""
    reserved_blocks: Annotated[
        dict[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0, le=2**31 - 1)]], BeforeValidator(with_whole_keys)
    ] = {}
    """KV blocks by level of priority that only this level and more urgent ones are admitted into: ``{0: 500}``."""
    inherit_priority: bool = False
    """With mode ``wait``: serve first who holds memory that a more urgent request waits for."""

    @field_validator("inherit_priority")
    @classmethod
    def _only_where_nobody_gives_way(cls, inherit_priority: bool, info: ValidationInfo) -> bool:
        if inherit_priority and info.data.get("mode") != "wait":
            raise ValueError("false, except with mode 'wait': in other modes memory is taken from its holder")
        return inherit_priority


class SchedulerSection(Section):
    """The policies of every replica's scheduler."""

    admission: list[Policy] = []
    """Policies that may turn an arriving request away."""
    ordering: Policy = {"name": "fcfs"}
    """Policy that orders waiting requests."""
    batching: Policy = {"name": "chunked-prefill"}
    """Policy that sets the limits of a step."""
    preemption: Preemption = Preemption()
    """What happens when KV memory runs short."""
    reserve_whole_prompt: bool = True
    """Whether a request is admitted only when blocks for its whole prompt are free."""
