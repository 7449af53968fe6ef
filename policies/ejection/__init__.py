"""Which replicas get no requests for a while, since they do badly."""

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(slots=True)
class Ejection(ABC):
    """A circuit breaker for each replica: judges what becomes of requests there, and ejects a replica for some time.

    Never more than ``most_share`` of the replicas are out at once.
    """

    most_share: float = 0.5

    @abstractmethod
    def judge(self, replica: int, ttft_s: float | None) -> float | None:
        """Seconds for which a replica now gets no requests; None if it is left in.

        A request there is complete, with its first token after ``ttft_s``, or will never be (None).
        """

    def returned(self, replica: int) -> None:
        """Take note that a replica gets requests again."""
