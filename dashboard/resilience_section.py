"""What went wrong in a run and what was done about it, in the report: faults, gateway, groups of users, updates."""

from collections.abc import Iterator
from typing import Any

from dashboard.formatting import number, seconds, share
from dashboard.markup import facts, figure_of, section, text

_MOST_EVENTS = 50
"""Faults that are told one by one."""


def resilience_section(summary: dict[str, Any]) -> str:
    """A panel for each part that a run has; nothing where it has none."""
    panels = "".join(
        f'<div class="panel"><h3>{title}</h3>{body}</div>'
        for key, title, panel in (
            ("faults", "Faults", _faults),
            ("gateway", "Gateway", _gateway),
            ("groups", "Groups of users", _groups),
            ("updates", "Updates", _updates),
        )
        if (body := panel(summary[key]) if key in summary else "")
    )
    return section("Resilience", panels) if panels else ""


def _faults(figures: dict[str, Any]) -> str:
    events = figures["events"]
    rows = [
        [
            text(event["name"]),
            "-" if event["replica"] is None else number(event["replica"]),
            seconds(event["at_s"]),
            figure_of(event["until_s"], seconds),
            number(event["interrupted_requests"]),
            number(event["given_up_requests"]),
        ]
        for event in events[:_MOST_EVENTS]
    ]
    table = _table(("Fault", "Replica", "From", "Until", "Requests interrupted", "Given up"), rows)
    more = len(events) - len(rows)
    return table + (f'<p class="quiet"><small>{more:,} more are in summary.json.</small></p>' if more > 0 else "")


def _gateway(figures: dict[str, Any]) -> str:
    return facts(list(_gateway_rows(figures)))


def _gateway_rows(figures: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if "retries" in figures:
        yield "Requests sent again", number(figures["retries"])
    if "hedges" in figures:
        yield "Copies sent", number(figures["hedges"]["sent"])
        yield "Copies that answered first", number(figures["hedges"]["won"])
    if "ejections" in figures:
        yield "Replicas ejected", number(len(figures["ejections"]))
    if "shortened_requests" in figures:
        yield "Outputs shortened", number(figures["shortened_requests"])
        yield "Tokens cut", number(figures["cut_tokens"])
    if "queued_requests" in figures:
        yield "Requests that waited at the gateway", number(figures["queued_requests"])


def _groups(figures: dict[str, Any]) -> str:
    rows = []
    for name, group in figures.items():
        good, difference = group["good"], group.get("good_difference")
        rows.append(
            [
                text(name),
                number(group["requests"]),
                number(group["users"]),
                "-" if good is None else share(good["value"]),
                "-" if difference is None else f"{difference['low']:+.2%} to {difference['high']:+.2%}",
                figure_of(group["ttft_s"], seconds),
                text(group.get("verdict", "the first")),
            ]
        )
    head = ("Pool", "Requests", "Users", "Good", "Against the first (95%)", "TTFT mean by user", "Verdict")
    return _table(head, rows)


def _updates(updates: list[dict[str, Any]]) -> str:
    rows = [
        [
            text(update["name"]),
            f"{update['updated_replicas']:,} of {update['replicas']:,}",
            seconds(update["at_s"]),
            figure_of(update["ready_s"], seconds),
            seconds(update["extra_replica_s"]),
        ]
        for update in updates
    ]
    return _table(("Update", "Replicas", "From", "Ready", "Replicas beside them"), rows)


def _table(names: tuple[str, ...], rows: list[list[str]]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table class="wide"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
