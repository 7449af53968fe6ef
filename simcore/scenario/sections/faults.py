"""What goes wrong in a run, and what is done about it."""

from typing import Annotated, Literal

from pydantic import Field

from simcore.workload.config.section import LongerThanZero, Seconds, Section


class Crash(Section):
    """A replica stops at once. Its KV memory and its prefix cache are lost."""

    name: Literal["crash"]
    replica: Annotated[int, Field(ge=0)]
    """Its number, from 0 in the first pool on."""
    at_s: Seconds
    """When, seconds from the start of the run."""
    restart_after_s: LongerThanZero | None = None
    """Seconds until it takes requests again, its caches empty. By default it never does."""


class Retries(Section):
    """What becomes of requests whose replica crashes."""

    attempts: Annotated[int, Field(ge=0, le=1000)] = 3
    """Times that a request is sent to another replica. Then it is rejected."""
    delay_s: Seconds = 0.0
    """Seconds between a crash and the next attempt."""
