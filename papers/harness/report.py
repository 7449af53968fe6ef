"""The report of a reproduced paper: figures with published values beside ours, and what holds."""

from collections.abc import Iterable, Sequence

from dashboard.figures.beside_published import beside_published
from dashboard.figures.chart import Chart
from dashboard.markup import facts, section, text
from dashboard.page import figure_block, page
from papers.harness.findings import Findings
from papers.harness.wording import CLAIM_COLUMNS, COMPARISON_COLUMNS, claim_rows, comparison_rows, reasons, rule


def render_paper(findings: Findings, charts: Sequence[Chart]) -> str:
    """The report as one HTML page."""
    published = findings.published
    about = [
        ("paper", f"{published.authors}, {published.venue}"),
        ("idea", published.idea),
        ("published setting", published.setting),
        ("ours", published.substitute),
        ("rule, written before the run", rule(findings)),
    ]
    body = [
        f"<header><h1>{text(published.title)}</h1></header>",
        section("What was run", facts([(name, text(value)) for name, value in about])),
        section("What holds", _table(CLAIM_COLUMNS, claim_rows(findings))),
    ]
    said = list(reasons(findings))
    if said:
        body.append(section("Why not in full", "".join(f"<p>{text(sentence)}</p>" for sentence in said)))
    blocks = (
        figure_block(f"chart{place}", beside_published(chart), chart.title, "Published values are grey.")
        for place, chart in enumerate(charts)
    )
    body.append(section("Figures", f'<div class="grid">{"".join(blocks)}</div>'))
    others = [*findings.ablations, *findings.sensitivity, *findings.today]
    if others:
        body.append(section("On what it depends", _table(COMPARISON_COLUMNS, comparison_rows(others))))
    if findings.practice:
        body.append(section("Today", f"<p>{text(findings.practice)}</p>"))
    return page(published.title, "".join(body))


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f'<th scope="col">{text(column)}</th>' for column in columns)
    lines = "".join("<tr>" + "".join(f"<td>{text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'
