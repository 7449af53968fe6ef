"""A plan as plain data: what ``plan.json`` and ``--json`` hold."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from experiments.planner.answers import Answer, Answers, Point
from experiments.planner.sensitivity import Effect, break_even
from experiments.planner.trial import Held

SCHEMA_VERSION = 1


def document_of(answers: Answers, effects: Sequence[Effect] = ()) -> dict[str, Any]:
    """The plan; it depends on the question alone, not on who carried out the trials."""
    plan = answers.plan
    question = plan.question
    return {
        "schema_version": SCHEMA_VERSION,
        "question": {
            "workload": question.document["workload"],
            "slo": question.document["slo"],
            "rate_per_s": question.load.rate_per_s,
            "models": list(question.models),
            "accelerators": list(question.accelerators),
            "engines": list(question.engines),
            "varied": {key: list(values) for key, values in question.varied.items()},
            "budget_usd_per_h": question.budget_usd_per_h,
        },
        "answers": [_answer(answer) for answer in answers.answers],
        "without_answer": [
            {"model": none.model, "accelerator": none.accelerator, "why": none.why} for none in answers.none
        ],
        "pareto_front": [_point(point) for point in answers.front],
        "break_even": [asdict(each) for each in break_even(answers)],
        "sensitivity": [_effect(effect) for effect in effects],
        "search": {
            "set_ups": len(plan.set_ups),
            "impossible": sum(bound.impossible is not None for bound in plan.bounds),
            "tried": len({tried.place for tried in plan.outcomes}),
            "trials": len(plan.outcomes),
            "simulations": plan.simulations,
            "simulated_requests": plan.requests,
        },
    }


def _answer(answer: Answer) -> dict[str, Any]:
    metrics = answer.outcome.figures["metrics"]
    fails = answer.fails
    return {
        "set_up": answer.set_up.label,
        "choices": dict(answer.set_up.choices),
        "model": answer.set_up.model,
        "accelerator": answer.set_up.accelerator,
        "replicas": answer.replicas,
        "gpus": answer.gpus,
        "usd_per_h": answer.usd_per_h,
        "limits": [_held(held) for held in answer.outcome.limits],
        "ttft_s": {name: metrics["ttft_s"][name] for name in ("p50", "p99")},
        "tpot_s": {name: metrics["tpot_s"][name] for name in ("p50", "p99")},
        "goodput_requests_per_s_and_gpu": answer.goodput_per_gpu,
        "limited_by": answer.limited_by,
        "on_pareto_front": answer.on_front,
        "nearest_that_fails": None
        if fails is None
        else {"replicas": fails.replicas, "why": fails.why, "limited_by": fails.limited_by},
        "priced_outside_calibrated_range": answer.outcome.figures["pricing"]["outside_calibrated_range"],
        "launch": answer.launch,
        "launch_notes": list(answer.launch_notes),
        "scenario": answer.outcome.document,
    }


def _held(held: Held) -> dict[str, Any]:
    return {
        "limit": held.name,
        "limit_s": held.limit_s,
        "share_within": held.share,
        "share_interval": [held.low, held.high],
        "share_needed": held.needed,
        "value_s": held.value_s,
        "value_interval_s": None if held.value_interval_s is None else list(held.value_interval_s),
        "margin": None if held.value_s is None else 1 - held.ratio,
    }


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "change": effect.change,
        "changes_answer": effect.changes_answer,
        "needed": [{"set_up": each.answer.set_up.label, "replicas": each.replicas} for each in effect.needed],
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "set_up": point.set_up.label,
        "model": point.set_up.model,
        "replicas": point.replicas,
        "usd_per_h": point.usd_per_h,
        "ttft_p99_s": point.ttft_s,
        "tpot_p99_s": point.tpot_s,
        "goodput_requests_per_s_and_gpu": point.goodput_per_gpu,
    }
