"""What a study found: values with paired intervals, and verdicts by the rule of ``Claim``."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from experiments.comparison.significance import mean_difference
from papers.harness.published import Claim, Comparison, Published
from papers.harness.study import Measured

HOLDS, IN_DIRECTION, DOES_NOT_HOLD = "holds", "holds in direction", "does not hold"
_EDGE = 1e-9


@dataclass(frozen=True, slots=True)
class Value:
    """A value of ours with its 95% interval, which has no width where nothing is random."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Finding:
    """A comparison and what it came to; ``verdict`` is None where nothing was published."""

    comparison: Comparison
    ours: Value
    verdict: str | None = None


@dataclass(frozen=True, slots=True)
class Findings:
    """All that a study found, with the sentence for practice."""

    name: str
    published: Published
    claims: Sequence[Finding]
    ablations: Sequence[Finding]
    sensitivity: Sequence[Finding]
    today: Sequence[Finding]
    practice: str

    def document(self) -> dict[str, Any]:
        """The findings as plain data."""
        parts = {part: getattr(self, part) for part in ("claims", "ablations", "sensitivity", "today")}
        return {"paper": self.name, "title": self.published.title, "practice": self.practice} | {
            part: [
                finding.comparison.model_dump(mode="json", exclude_none=True)
                | {"ours": asdict(finding.ours)}
                | ({} if finding.verdict is None else {"verdict": finding.verdict})
                for finding in found
            ]
            for part, found in parts.items()
        }


def value_of(comparison: Comparison, measured: Measured) -> Value:
    """The mean over seeds, and of a ratio the geometric mean of the pairs, each with Student's t interval."""
    ours = np.array(measured.values(comparison.setup, comparison.of, comparison.figure), dtype=np.float64)
    if comparison.over is None:
        return _interval(ours)
    other_setup = comparison.over_setup or comparison.setup
    others = np.array(measured.values(other_setup, comparison.over, comparison.figure), dtype=np.float64)
    logarithms = _interval(np.log(ours / others))
    return Value(*(float(np.exp(end)) for end in (logarithms.value, logarithms.low, logarithms.high)))


def _interval(values: np.ndarray[Any, np.dtype[np.float64]]) -> Value:
    estimate = mean_difference(values)
    low = estimate.difference if estimate.low is None else estimate.low
    high = estimate.difference if estimate.high is None else estimate.high
    return Value(estimate.difference, low, high)


def verdict(claim: Claim, ours: Value) -> str:
    """The verdict by the rule that ``Claim`` states."""
    low, high = claim.published_range
    is_near = low - claim.tolerance * abs(low) - _EDGE <= ours.value <= high + claim.tolerance * abs(high) + _EDGE
    if claim.beyond is None:
        return HOLDS if is_near else DOES_NOT_HOLD
    has_direction = ours.low > claim.beyond if low > claim.beyond else ours.high < claim.beyond
    if not has_direction:
        return DOES_NOT_HOLD
    return HOLDS if is_near else IN_DIRECTION


def evaluate(name: str, published: Published, measured: Measured) -> Findings:
    """Hold what was measured against what was published; what was not measured is left out."""
    claims = []
    for claim in published.claims:
        if _is_measured(claim, measured):
            ours = value_of(claim, measured)
            claims.append(Finding(claim, ours, verdict(claim, ours)))
    others = {
        part: [
            Finding(comparison, value_of(comparison, measured))
            for comparison in comparisons
            if _is_measured(comparison, measured)
        ]
        for part, comparisons in (
            ("ablations", published.ablations),
            ("sensitivity", published.sensitivity),
            ("today", published.today.comparisons),
        )
    }
    return Findings(
        name, published, claims, others["ablations"], others["sensitivity"], others["today"],
        practice(published, others["today"]),
    )  # fmt: skip


def _is_measured(comparison: Comparison, measured: Measured) -> bool:
    """Whether its cells were run: a smoke test leaves most of them out."""
    cells = {(comparison.setup, comparison.of)}
    if comparison.over is not None:
        cells.add((comparison.over_setup or comparison.setup, comparison.over))
    return cells <= set(measured.figures)


def practice(published: Published, today: Sequence[Finding]) -> str:
    """The sentence for practice, by what today's comparisons say; empty where none was measured."""
    if not today:
        return ""
    favourable = [
        finding.ours.high < 1 if published.today.less_is_better else finding.ours.low > 1 for finding in today
    ]
    said = published.today
    advice = said.pays if all(favourable) else said.differs if any(favourable) else said.costs
    figures = "; ".join(f"{finding.comparison.words}: {shown(finding.ours)}" for finding in today)
    return f"{advice} ({figures})"


def shown(ours: Value, unit: str = "") -> str:
    """A value with its interval, in words."""
    unit = f" {unit}" if unit else ""
    if ours.low == ours.high:
        return f"{rounded(ours.value)}{unit}"
    return f"{rounded(ours.value)}{unit} [{rounded(ours.low)}, {rounded(ours.high)}]"


def rounded(value: float) -> str:
    """Three significant digits, more where the whole part has more."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
