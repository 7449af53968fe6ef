"""Whom to let in."""

from abc import ABC, abstractmethod

from policies.views import RequestView, ServiceView


class Admission(ABC):
    """Judges each request on arrival, before it is routed; a scenario may list several, and all must agree.

    A policy is told only of requests that all of them let in, so what one rejects uses up nothing of another's limits.
    """

    @abstractmethod
    def rejects(self, request: RequestView, service: ServiceView, now_s: float) -> str | None:
        """Why the request is turned away, None if it is not; must not change anything."""

    def accepted(self, request: RequestView, now_s: float) -> None:
        """Take note that the request was let in."""

    def finished(self, request: RequestView, ttft_s: float, now_s: float) -> None:
        """Take note that a request that was let in is complete."""

    def dropped(self, request: RequestView, now_s: float) -> None:
        """Take note that a request that was let in will never be complete: dropped, or given up by its client."""


TOO_LARGE = "larger than the rate limit ever allows"
"""The reason for which a limit turns away what no waiting would help."""


def tokens_of(request: RequestView) -> int:
    """What a limit on tokens counts a request as: its prompt and the most that it may generate."""
    return request.prompt_tokens + request.max_output_tokens
