"""What a reader wants to know first: were the limits held, did the service keep up, and what did it cost."""

from collections.abc import Iterator
from typing import Any

from dashboard.formatting import number, percentile_name, seconds, share
from dashboard.markup import section, text
from simcore.metrics.registry import latency


def verdict_section(summary: dict[str, Any]) -> str:
    """A line each on limits, load and cost, marked good or bad."""
    marks = {True: '<span class="met">✓</span>', False: '<span class="missed">✗</span>', None: "–"}
    items = "".join(f"<li>{marks[good]} {text(words)}</li>" for good, words in verdicts(summary))
    return section("Verdict", f'<div class="panel"><ul class="verdict">{items}</ul></div>')


def verdicts(summary: dict[str, Any]) -> Iterator[tuple[bool | None, str]]:
    """Sentences, each with whether it is good news; None where it is neither."""
    yield from _limits(summary)
    rates = summary["throughput"]
    offered, served = rates["offered_requests_per_s"], rates["served_requests_per_s"]
    if offered is not None and served is not None:
        keeps_up = rates["keeps_up"]
        words = f"{number(offered)} requests/s were offered and {number(served)} served while requests arrived"
        yield keeps_up, f"{words}{'; the queue grew throughout' if keeps_up is False else ''}."
    cost = summary["cost"]
    if cost["usd_per_million_output_tokens"] is not None:
        per_million = number(cost["usd_per_million_output_tokens"])
        yield None, f"A million output tokens cost {per_million} USD at {number(cost['usd_per_h'])} USD/h."


def _limits(summary: dict[str, Any]) -> Iterator[tuple[bool | None, str]]:
    if not summary["slo"]:
        yield None, "No limits were stated."
    for key, objective in (summary["slo"] or {}).items():
        name, percentile = key.partition(".")[0], objective["percentile"]
        value = summary["metrics"][name][percentile]
        title = f"{percentile_name(percentile)} {latency(name).short}"
        if objective["met"] is None or value is None:
            yield None, f"Nothing is known of {title}, whose limit is {seconds(objective['limit_s'])}."
            continue
        words = "holds its limit of" if objective["met"] else "misses its limit of"
        kept = f"kept by {share(objective['share_within'])} of requests"
        yield objective["met"], f"{title} is {seconds(value)} and {words} {seconds(objective['limit_s'])}, {kept}."
