"""What is done for requests beside routing them."""

from simcore.scenario.sections.bounds import Policy
from simcore.workload.config.section import Section


class Gateway(Section):
    """Policies of what stands before the replicas. By default there are none."""

    hedging: Policy | None = None
    """Policy that says when a copy of a request without a token is sent to another replica."""
    ejection: Policy | None = None
    """Policy that says which replicas get no requests for a while: a circuit breaker for each."""
    output_limit: Policy | None = None
    """Policy that bounds outputs while the service is busy."""
