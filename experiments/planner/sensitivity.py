"""Which inputs would change the answer of a plan, were they a little other than they are said to be.

For each change the fewest replicas of every answer are looked for again, and the cheapest answer is compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.planner.answers import Answer, Answers
from experiments.planner.bounds import Asked, Bound, bound_of
from experiments.planner.driving import Progress, drive
from experiments.planner.load import Load
from experiments.planner.question import with_rate
from experiments.planner.search import Try, search
from experiments.planner.space import SetUp
from experiments.planner.stages import Stage, stages_of
from experiments.planner.trial import Outcome, Trial
from experiments.runners import Runner
from simcore.cost.uncertainty import KINDS, Draw
from simcore.scenario import parse_scenario
from simcore.workload import build_workload

_FACTOR = 1.25
_TAIL = 0.1
"""Kernel prices are taken at this level of their errors, and at the opposite one."""
_SCALED = {"fixed": ("tokens",), "uniform": ("low", "high"), "lognormal": ("median",)}
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Needed:
    """What an answer's set-up needs after a change; None where no number of replicas that was tried will do."""

    answer: Answer
    replicas: int | None

    @property
    def usd_per_h(self) -> float:
        """Its price, infinite where nothing will do."""
        return float("inf") if self.replicas is None else self.replicas * self.answer.set_up.usd_per_h


@dataclass(frozen=True, slots=True)
class Effect:
    """A change and what comes of it; ``changes_answer`` tells whether another set-up is then the cheapest."""

    change: str
    needed: tuple[Needed, ...]
    changes_answer: bool

    @property
    def cheapest(self) -> Needed:
        """The cheapest of the answers after the change."""
        return min(self.needed, key=lambda each: each.usd_per_h)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The price of one accelerator, USD per hour, at which its answer costs as much as the cheapest other one."""

    accelerator: str
    usd_per_h: float
    now_usd_per_h: float


@dataclass(frozen=True, slots=True)
class _Change:
    name: str
    document: Document
    draw: Draw | None = None


def sensitivity(answers: Answers, runner: Runner, most_requests: int, progress: Progress | None = None) -> list[Effect]:
    """The effect of each change that can be made to the workload, and of dearer and cheaper kernels."""
    question = answers.plan.question
    changes = list(_changes(question.document, question.load))
    set_ups: list[SetUp] = []
    bounds: list[Bound] = []
    trials: list[tuple[SetUp, tuple[Stage, ...], Draw | None]] = []
    for change in changes:
        workload = change.document["workload"]
        scenario = parse_scenario(answers.answers[0].set_up.document | {"workload": workload})
        load = Load.of(build_workload(scenario.workload, scenario.seed, Path()), workload)
        stages = stages_of(load, question.objectives, most_requests)
        for answer in answers.answers:
            own = replace(answer.set_up, document=answer.set_up.document | {"workload": workload})
            bound = bound_of(Asked(own.alone, load, question.objectives, own.apart))
            # Cheaper kernels than usual need fewer replicas than the bound by usual prices says.
            bounds.append(bound if change.draw is None else replace(bound, replicas=1, work=float(answer.replicas)))
            set_ups.append(own)
            trials.append((own, stages, change.draw))

    def trial_of(tried: Try) -> Trial:
        own, stages, draw = trials[tried.place]
        return Trial(own.with_replicas(tried.replicas), stages, draw)

    outcomes: dict[Try, Outcome] = {}
    searches = {place: search((place,), set_ups, bounds, None) for place in range(len(set_ups))}
    count = len(answers.answers)
    found = drive(
        searches,
        trial_of,
        lambda tried: f"{changes[tried.place // count].name}: {tried.replicas} × {set_ups[tried.place].label}",
        outcomes,
        runner,
        progress or (lambda what, simulations: None),
    )
    effects = []
    for number, change in enumerate(changes):
        best = [found[number * count + place].best for place in range(count)]
        needed = tuple(
            Needed(answer, None if each is None else each.replicas)
            for answer, each in zip(answers.answers, best, strict=True)
        )
        cheapest = min(needed, key=lambda each: each.usd_per_h)
        effects.append(Effect(change.name, needed, cheapest.answer is not answers.answers[0]))
    return effects


def break_even(answers: Answers) -> list[BreakEven]:
    """For each accelerator the price at which the answer would change, all else the same."""
    found = []
    for answer in answers.answers:
        others = [other.usd_per_h for other in answers.answers if other.set_up.accelerator != answer.set_up.accelerator]
        if others:
            now = answer.set_up.usd_per_h / answer.set_up.devices
            found.append(BreakEven(answer.set_up.accelerator, min(others) / answer.gpus, now))
    return found


def _changes(document: Document, load: Load) -> list[_Change]:
    section = document["workload"]
    found = []
    for sign, factor in (("+25%", _FACTOR), ("-20%", 1 / _FACTOR)):
        if load.rate_per_s is not None and ("rate_per_s" in (section.get("arrivals") or {}) or "trace" in section):
            changed = with_rate(section, load.rate_per_s * factor, load)
            if "trace" not in section:
                changed = with_rate(section, section["arrivals"]["rate_per_s"] * factor, load)
            found.append(_Change(f"rate {sign}", document | {"workload": changed}))
        for key in ("prompt_tokens", "output_tokens"):
            scaled = _scaled(section.get(key), factor)
            if scaled is not None:
                name = f"{key.partition('_')[0]} lengths {sign}"
                found.append(_Change(name, document | {"workload": {**section, key: scaled}}))
    for name, level in (("dearer", _TAIL), ("cheaper", 1 - _TAIL)):
        draw = dict.fromkeys(KINDS, level) | {"routing": 0.5}
        for kind in ("step", "host_step", "host_request"):
            draw[kind] = 1 - level  # these are factors on prices, the others errors of them
        found.append(_Change(f"kernels {name}", document, draw))
    return found


def _scaled(lengths: Any, factor: float) -> Document | None:
    """A distribution of lengths with all of them so many times as long; None where it has no such form."""
    if not isinstance(lengths, Mapping) or lengths.get("name") not in _SCALED:
        return None
    scaled = dict(lengths)
    for key in _SCALED[lengths["name"]]:
        value = lengths[key] * factor
        scaled[key] = value if key == "median" else max(round(value), 1)
    if "max" in scaled and scaled["max"] < 2**31 - 1:
        scaled["max"] = round(scaled["max"] * factor)
    return scaled
