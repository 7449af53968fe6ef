"""The page of a plan: the answers, what limits them, the front, and how each is launched."""

from collections.abc import Sequence

import plotly.graph_objects as go

from dashboard.figures.style import BLUE, GREY, ORANGE, panels
from dashboard.formatting import number, seconds, share
from dashboard.markup import section, text
from dashboard.page import figure_block, page
from experiments.planner.answers import Answer, Answers, Point
from experiments.planner.sensitivity import Effect
from experiments.planner.trial import Held

_CAPTION = (
    "Set-ups that were tried and hold the limits. No other that was tried is as good in all of price, TTFT, TPOT and "
    "goodput for each GPU."
)


def render_plan(answers: Answers, title: str, effects: Sequence[Effect] = ()) -> str:
    """The page as a complete HTML document."""
    plan = answers.plan
    load = plan.question.load
    rate = "Requests that wait for answers" if load.rate_per_s is None else f"{load.rate_per_s:.3g} requests/s"
    asked = f"{rate}, {load.mean_prompt_tokens:,.0f} + {load.mean_output_tokens:,.0f} tokens on average."
    searched = (
        f"{len(plan.set_ups):,} set-ups; {plan.simulations} simulations of {plan.requests:,} requests. "
        "Intervals are 95%."
    )
    body = f'<header><h1>{text(title)}</h1><p class="quiet">{text(asked)} {text(searched)}</p></header>'
    if answers.answers:
        body += section("The cheapest set-up of each accelerator", _table(answers))
        body += section("One replica less", _failures(answers))
    if answers.none:
        reasons = "".join(
            f"<li>{text(none.model)} on {text(none.accelerator)}: {text(none.why)}</li>" for none in answers.none
        )
        body += section("No answer", f"<ul>{reasons}</ul>")
    tried = figure_block("front", _front(answers), "Price and TTFT", _CAPTION) + _front_table(answers)
    body += section("What was tried", tried)
    if effects:
        body += section("What would change the answer", _effects(effects))
    body += section("Launch", _launch(answers))
    return page(title, body)


def _table(answers: Answers) -> str:
    first = answers.answers[0].outcome.limits
    names = ["set-up", "USD/h", "GPUs", *(f"{held.name} ≤ {seconds(held.limit_s)}" for held in first)]
    names += ["goodput per GPU", "limited by"]
    return _html_table(names, [_row(answer) for answer in answers.answers])


def _row(answer: Answer) -> list[str]:
    per_gpu = answer.goodput_per_gpu
    return [
        f"{answer.set_up.model} on {answer.replicas} × {answer.set_up.label}",
        f"{answer.usd_per_h:.2f}",
        str(answer.gpus),
        *(_held(held) for held in answer.outcome.limits),
        "–" if per_gpu is None else f"{number(per_gpu)} requests/s",
        answer.limited_by,
    ]


def _held(held: Held) -> str:
    bounds = held.value_interval_s
    spread = "" if bounds is None else f" ({seconds(bounds[0])} to {seconds(bounds[1])})"
    return f"{seconds(held.value_s)}{spread}; kept by {share(held.share)} ({share(held.low)} to {share(held.high)})"


def _failures(answers: Answers) -> str:
    rows = [
        [f"{fails.replicas} × {answer.set_up.label}", fails.why, fails.limited_by or "–"]
        for answer in answers.answers
        if (fails := answer.fails) is not None
    ]
    return _html_table(["set-up", "why it fails", "limited by"], rows) if rows else "<p>One replica is enough.</p>"


def _front(answers: Answers) -> go.Figure | None:
    if not answers.front:
        return None
    figure = panels("price (USD/h)", "P99 TTFT (s)")
    for place, accelerator in enumerate(dict.fromkeys(point.set_up.accelerator for point in answers.front)):
        own = [point for point in answers.front if point.set_up.accelerator == accelerator]
        figure.add_scatter(
            x=[point.usd_per_h for point in own],
            y=[point.ttft_s for point in own],
            text=[text(f"{point.replicas} × {point.set_up.label}") for point in own],
            mode="markers",
            name=text(accelerator),
            marker={"size": 9, "color": (BLUE, ORANGE, GREY)[place] if place < 3 else None},
            hovertemplate="%{text}<br>%{x:.2f} USD/h, %{y:.3f} s",
        )
    return figure


def _front_table(answers: Answers) -> str:
    names = ["front", "USD/h", "P99 TTFT", "P99 TPOT", "goodput per GPU"]
    return _html_table(names, [_point(point) for point in answers.front])


def _point(point: Point) -> list[str]:
    per_gpu = point.goodput_per_gpu
    return [
        f"{point.set_up.model} on {point.replicas} × {point.set_up.label}",
        f"{point.usd_per_h:.2f}",
        seconds(point.ttft_s),
        seconds(point.tpot_s),
        "–" if per_gpu is None else f"{number(per_gpu)} requests/s",
    ]


def _effects(effects: Sequence[Effect]) -> str:
    rows = []
    for effect in effects:
        best = effect.cheapest
        found = "none" if best.replicas is None else f"{best.replicas} × {best.answer.set_up.label}"
        price = "–" if best.replicas is None else f"{best.usd_per_h:.2f}"
        rows.append([effect.change, found, price, "yes" if effect.changes_answer else "no"])
    return _html_table(["change", "cheapest then", "USD/h", "another answer"], rows)


def _launch(answers: Answers) -> str:
    lines = [answer.launch for answer in answers.answers if answer.launch is not None]
    return f"<pre>{text(chr(10).join(lines))}</pre>" if lines else "<p>No command is known.</p>"


def _html_table(names: list[str], rows: list[list[str]]) -> str:
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row">{text(row[0])}</th>' + "".join(f"<td>{text(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return f'<div class="panel"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
