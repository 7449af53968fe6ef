"""What goes wrong in a run."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from simcore.workload.config.section import LongerThanZero, Seconds, Section

Place = Annotated[int, Field(ge=0)]
Factor = Annotated[float, Field(gt=1, le=1000)]
ShareLeft = Annotated[float, Field(ge=1e-6, lt=1)]


class Timed(Section):
    """A fault that strikes at a stated time, or again and again by chance."""

    at_s: Seconds | None = None
    """When, seconds from the start of the run."""
    every_s: LongerThanZero | None = None
    """In place of ``at_s``: mean seconds from one such fault to the next, by chance of the scenario's seed (exponential
    times)."""
    until_s: LongerThanZero | None = None
    """With ``every_s``: when the last such fault may strike."""

    @model_validator(mode="after")
    def _one_or_many(self) -> "Timed":
        if (self.at_s is None) == (self.every_s is None):
            raise ValueError("either at_s or every_s")
        if (self.every_s is None) != (self.until_s is None):
            raise ValueError("until_s with every_s, and only there")
        return self


class OnReplica(Timed):
    """A fault that strikes one replica."""

    replica: Place | None = None
    """Its number, from 0 in the first pool on. With ``every_s`` one by chance by default."""

    @model_validator(mode="after")
    def _replica_is_named(self) -> "OnReplica":
        if self.at_s is not None and self.replica is None:
            raise ValueError("a replica where at_s says when")
        return self


class Crash(OnReplica):
    """A replica stops at once. Its KV memory and its prefix cache are lost."""

    name: Literal["crash"]
    restart_after_s: LongerThanZero | None = None
    """Seconds until it takes requests again, its caches empty. By default it never does."""


class SlowGpu(OnReplica):
    """The accelerators of a replica are slow for a while. Steps that begin then take longer."""

    name: Literal["slow-gpu"]
    for_s: LongerThanZero
    """How long, seconds."""
    factor: Factor
    """How many times as long a step takes."""


class Partition(OnReplica):
    """The router cannot reach a replica for a while. Its caches outlive that."""

    name: Literal["partition"]
    for_s: LongerThanZero
    """How long, seconds."""


class SlowLink(OnReplica):
    """The links of a replica are slow for a while: NICs, and those within its node."""

    name: Literal["slow-link"]
    for_s: LongerThanZero
    """How long, seconds."""
    share: ShareLeft
    """Share of the bandwidth that is left, in both directions."""


class TransferLoss(Timed):
    """Some transfers of KV are lost for a while."""

    name: Literal["transfer-loss"]
    for_s: LongerThanZero
    """How long, seconds."""
    share: Annotated[float, Field(gt=0, le=1)]
    """Share of those that end then, by chance. ``cluster.handover.lost_share`` is of all other times."""


class Poison(Section):
    """Requests that crash whatever replica computes them, in the step that begins with their prompt."""

    name: Literal["poison"]
    requests: list[Place] = []
    """Their numbers, in order of arrival from 0."""
    share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of all other requests that do so too, by chance."""
    restart_after_s: LongerThanZero | None = None
    """Seconds until the replica takes requests again. By default it never does."""


FaultSection = Annotated[
    Crash | SlowGpu | Partition | SlowLink | TransferLoss | Poison,
    Field(discriminator="name"),
]
