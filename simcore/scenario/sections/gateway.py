"""What is done for requests beside routing them."""

from typing import Annotated

from pydantic import Field

from simcore.scenario.sections.bounds import Policy
from simcore.workload.config.section import Section


class Gateway(Section):
    """Policies of what stands before the replicas. By default there are none."""

    hedging: Policy | None = None
    """Policy that says when a copy of a request without a token is sent to another replica."""
    ejection: Policy | None = None
    """Policy that says which replicas get no requests for a while: a circuit breaker for each."""
    most_open_requests: Annotated[int, Field(ge=1)] | None = None
    """Requests that a replica may have, waiting and running. Others wait at the gateway, first come first served, for
    whichever has room first. By default all wait at replicas."""
    output_limit: Policy | None = None
    """Policy that bounds outputs while the service is busy."""
