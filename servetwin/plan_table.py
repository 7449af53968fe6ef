"""The answers of a plan as a table and a few sentences."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from dashboard.digits import figure, half_width_text
from dashboard.formatting import number, seconds, share, time_unit
from experiments.planner.answers import Answer, Answers
from experiments.planner.sensitivity import Effect, break_even
from experiments.planner.trial import Held
from servetwin.console import plain_table, print_table

_MOST_BREAK_EVENS = 5


def print_answers(answers: Answers, output: Console) -> None:
    """Print what was asked, the answers, what fails next to them, and how much was simulated."""
    plan = answers.plan
    load, limits = plan.question.load, plan.question.objectives
    rate = "requests that wait for answers" if load.rate_per_s is None else f"{load.rate_per_s:.3g} requests/s"
    stated = ", ".join(
        f"{metric.removesuffix('_s')}_{name} <= {limit:g} s"
        for metric, each in limits.items()
        for name, limit in each.items()
    )
    output.print(
        f"{rate} of {load.mean_prompt_tokens:,.0f} + {load.mean_output_tokens:,.0f} tokens on average, {escape(stated)}"
    )
    several = len(plan.question.models) > 1
    if answers.answers:
        head = ("USD/h", "GPUs", "set-up of a replica", *_limit_names(answers), "goodput per GPU", "limited by")
        table = plain_table(*(("model",) if several else ()), *head)
        for answer in answers.answers:
            table.add_row(*((answer.set_up.model,) if several else ()), *_cells(answer))
        print_table(table, output)
    for answer in answers.answers:
        if answer.fails is not None:
            fails = answer.fails
            because = "" if fails.limited_by is None else f" ({fails.limited_by})"
            output.print(escape(f"{fails.replicas} × {answer.set_up.label} fails: {fails.why}{because}"))
    for none in answers.none:
        output.print(escape(f"{none.model} on {none.accelerator}: no answer. {_sentence(none.why)}"))
    output.print(
        f"{plan.simulations} simulations of {plan.requests:,} requests; {len(plan.set_ups):,} set-ups, "
        f"{sum(bound.impossible is not None for bound in plan.bounds):,} of them impossible"
    )


def print_effects(answers: Answers, effects: Sequence[Effect], output: Console) -> None:
    """Print at which prices another accelerator would be the cheapest, and what other changes would do."""
    for each in break_even(answers)[:_MOST_BREAK_EVENS]:
        output.print(
            escape(
                f"{each.accelerator} costs as much as the cheapest other answer at {number(each.usd_per_h)} USD/h each "
                f"({number(each.now_usd_per_h)} now)"
            )
        )
    if not effects:
        return
    table = plain_table("change", "cheapest then", "USD/h", "other answer")
    for effect in effects:
        best = effect.cheapest
        if best.replicas is None:
            table.add_row(effect.change, "none", "–", "–")
        else:
            changed = "yes" if effect.changes_answer else "no"
            table.add_row(
                effect.change, f"{best.replicas} × {best.answer.set_up.label}", f"{best.usd_per_h:.2f}", changed
            )
    print_table(table, output)


def _limit_names(answers: Answers) -> list[str]:
    return [f"{held.name} (limit {seconds(held.limit_s)})" for held in answers.answers[0].outcome.limits]


def _cells(answer: Answer) -> list[str]:
    per_gpu = answer.goodput_per_gpu
    return [
        f"{answer.usd_per_h:.2f}",
        str(answer.gpus),
        f"{answer.replicas} × {answer.set_up.label}",
        *(_held(held) for held in answer.outcome.limits),
        "–" if per_gpu is None else f"{number(per_gpu)} requests/s",
        answer.limited_by,
    ]


def _held(held: Held) -> str:
    bounds = held.value_interval_s
    if bounds is None or held.value_s is None:
        return f"{seconds(held.value_s)}, {share(held.share)}"
    scale, unit = time_unit(held.value_s)
    half_width = (bounds[1] - bounds[0]) / 2 * scale
    value = f"{figure(held.value_s * scale, half_width)} ± {half_width_text(half_width)} {unit}"
    return f"{value}, {share(held.share)}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
