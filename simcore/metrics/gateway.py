"""What a gateway did for requests beside routing them: the section ``gateway`` of a summary."""

from typing import Any

from simcore.core.clock import to_s
from simcore.service.gateway import Gateway


def gateway_figures(gateway: Gateway, end_s: float) -> dict[str, Any]:
    """Figures of each part that there is; nothing where there is none."""
    figures: dict[str, Any] = {}
    if gateway.resending is not None:
        figures["retries"] = gateway.resending.attempts
    if gateway.hedges is not None:
        figures["hedges"] = {"sent": gateway.hedges.sent, "won": gateway.hedges.won}
    if gateway.ejections is not None:
        figures["ejections"] = [
            {"replica": place, "at_s": to_s(from_ns), "until_s": min(to_s(until_ns), max(end_s, to_s(from_ns)))}
            for place, from_ns, until_ns in gateway.ejections.records
        ]
    if gateway.output_limit is not None:
        figures["shortened_requests"] = gateway.shortened
        figures["cut_tokens"] = gateway.cut_tokens
    if gateway.queue is not None:
        figures["queued_requests"] = gateway.queue.waited
    return figures
