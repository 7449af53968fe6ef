"""The page of ``servetwin explain``: a table and a roofline plot per step."""

from collections.abc import Sequence

from dashboard.figures.roofline import roofline
from dashboard.formatting import seconds, share
from dashboard.markup import section, text
from dashboard.page import figure_block, page
from simcore.build.explanation import Explanation
from simcore.cost.breakdown import OperatorTime

_CAPTION = (
    "A dot per operator, its size by its share of the step's time, its colour by the source of its price. "
    "Distance below the line is what the kernel leaves unused."
)


def render_explanation(steps: Sequence[Explanation], title: str) -> str:
    """The page as a complete HTML document."""
    first = steps[0]
    head = f'<p class="quiet">{text(first.model)} on {text(first.devices)}, one rank. {text(first.kernels)}</p>'
    body = f"<header><h1>{text(title)}</h1>{head}</header>"
    for number, step in enumerate(steps):
        figure = figure_block(f"roofline-{number}", roofline(step), f"Roofline of {step.shape}", _CAPTION)
        facts = f"{seconds(step.seconds)}, MFU {share(step.mfu)}, MBU {share(step.mbu)}"
        body += section(f"{step.shape}: {facts}", _table(step) + figure)
    return page(title, body)


def _table(step: Explanation) -> str:
    names = ("operator", "kernels", "time", "share", "MFU", "MBU", "source", "held-out error")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "".join(_row(step, operator) for operator in sorted(step.operators, key=lambda time: -time.seconds))
    return f'<div class="panel"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _row(step: Explanation, operator: OperatorTime) -> str:
    kernel = bool(operator.flops or operator.bytes)
    cells = (
        str(operator.count),
        seconds(operator.seconds),
        share(operator.seconds / step.seconds),
        share(step.mfu_of(operator)) if kernel else "–",
        share(step.mbu_of(operator)) if kernel else "–",
        operator.source + (", extrapolated" if operator.extrapolated else ""),
        "–" if operator.errors is None else share(operator.errors.median),
    )
    return (
        f'<tr><th scope="row">{text(operator.name)}</th>'
        + "".join(f"<td>{text(cell)}</td>" for cell in cells)
        + "</tr>"
    )
