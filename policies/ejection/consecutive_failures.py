"""So many failures in a row."""

from collections import Counter
from dataclasses import dataclass, field

from policies.bounds import check_counts, check_range, check_seconds
from policies.ejection import Ejection


@dataclass(slots=True)
class ConsecutiveFailures(Ejection):
    """Eject a replica after ``failures`` in a row: requests dropped, given up, or with a first token after ``ttft_s``.

    It is out for ``base_s`` the first time, twice as long the second, and so on.

    Source: outlier detection of the Envoy proxy.
    """

    failures: int = 5
    ttft_s: float = 10.0
    base_s: float = 30.0
    _in_a_row: Counter[int] = field(default_factory=Counter, init=False, repr=False)
    _ejected: Counter[int] = field(default_factory=Counter, init=False, repr=False)

    def __post_init__(self) -> None:
        check_range(self, 0.0, 1.0, "most_share")
        check_counts(self, "failures")
        check_seconds(self, "ttft_s", "base_s")

    def judge(self, replica: int, ttft_s: float | None) -> float | None:
        """Count failures; a success begins anew."""
        if ttft_s is not None and ttft_s <= self.ttft_s:
            self._in_a_row[replica] = 0
            return None
        self._in_a_row[replica] += 1
        if self._in_a_row[replica] < self.failures:
            return None
        return self.base_s * (self._ejected[replica] + 1)

    def returned(self, replica: int) -> None:
        """It begins anew, but is remembered."""
        self._in_a_row[replica] = 0
        self._ejected[replica] += 1
