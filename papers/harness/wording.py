"""Findings in words: the rows that the terminal, the report and the page show alike."""

from collections.abc import Iterator

from papers.harness.findings import Finding, Findings, rounded, shown
from papers.harness.published import Claim

CLAIM_COLUMNS = ("claim", "published", "ours, with 95% interval", "verdict", "published value is")
COMPARISON_COLUMNS = ("comparison", "setup", "ours, with 95% interval")


def published_value(claim: Claim) -> str:
    """What was published, a range by its ends."""
    low, high = claim.published_range
    unit = f" {claim.unit}" if claim.unit else ""
    return f"{rounded(low)}{unit}" if low == high else f"{rounded(low)} to {rounded(high)}{unit}"


def claim_rows(findings: Findings) -> Iterator[tuple[str, ...]]:
    """A row for each claim, under ``CLAIM_COLUMNS``."""
    for finding in findings.claims:
        claim = finding.comparison
        assert isinstance(claim, Claim)
        ours = shown(finding.ours, claim.unit)
        yield claim.words, published_value(claim), ours, finding.verdict or "", claim.status


def comparison_rows(found: list[Finding]) -> Iterator[tuple[str, ...]]:
    """A row for each comparison without a published value, under ``COMPARISON_COLUMNS``."""
    for finding in found:
        yield finding.comparison.words, finding.comparison.setup, shown(finding.ours, finding.comparison.unit)


def reasons(findings: Findings) -> Iterator[str]:
    """Why claims do not hold in full, where the data file says it."""
    for finding in findings.claims:
        claim = finding.comparison
        if isinstance(claim, Claim) and finding.verdict != "holds" and claim.why:
            yield f"{claim.words}: {claim.why}"


def rule(findings: Findings) -> str:
    """The rule of the verdicts, in a sentence."""
    tolerances = sorted({f.comparison.tolerance for f in findings.claims if isinstance(f.comparison, Claim)})
    within = " or ".join(f"{100 * tolerance:g}%" for tolerance in tolerances)
    return (
        f"A claim holds if our value is within {within} of the published one and its interval lies on the published "
        "side of no effect; it holds in direction if the interval alone does. " + findings.published.rule
    ).strip()
