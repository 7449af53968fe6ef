"""What becomes of requests that lost their replica."""

from typing import Annotated

from pydantic import Field

from simcore.workload.config.section import Seconds, Section


class Retries(Section):
    """What becomes of requests whose replica crashes, or cannot be reached any more."""

    attempts: Annotated[int, Field(ge=0, le=1000)] = 3
    """Times that a request is sent to another replica. Then it is rejected."""
    delay_s: Seconds = 0.0
    """Seconds before the first attempt."""
    backoff: Annotated[float, Field(ge=1, le=100)] = 1.0
    """Each further attempt waits so many times as long as the one before."""
    budget_share: Annotated[float, Field(ge=0, le=1)] | None = None
    """Most attempts of all requests, as a share of the requests that have arrived. A request beyond is rejected. By
    default there is no such limit."""
    of_rejected: bool = False
    """Whether requests that an admission policy turns away are sent again too, as impatient clients do."""
    of_timeouts: bool = False
    """Whether clients whose first token takes longer than they wait ask again, and wait as long anew."""
    budget_least: Annotated[int, Field(ge=0)] = 10
    """Attempts that the budget allows in any case."""
