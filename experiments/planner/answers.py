"""The answers of a plan: of each model and accelerator the cheapest set-up that holds the limits, or why none does."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.planner.planning import CapacityPlan
from experiments.planner.reasons import Limit, limited_by, told, worst
from experiments.planner.search import Found, Solved, Try
from experiments.planner.space import SetUp
from experiments.planner.trial import Outcome
from simcore.engines import load_engine
from simcore.models import preset_names
from simcore.models.catalogue import load_preset
from simcore.scenario import parse_scenario


@dataclass(frozen=True, slots=True)
class Failure:
    """The nearest set-up that does not hold the limits, one replica less: why, and what limits it."""

    replicas: int
    why: str
    limited_by: Limit | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A set-up that holds the limits with so many replicas and no fewer.

    ``launch`` starts one replica of it; ``launch_notes`` say what that leaves out. ``fails`` is None where a single
    replica is enough.
    """

    set_up: SetUp
    replicas: int
    outcome: Outcome
    limited_by: Limit
    fails: Failure | None
    on_front: bool
    launch: str | None
    launch_notes: tuple[str, ...]

    @property
    def gpus(self) -> int:
        """Accelerators in all."""
        return self.replicas * self.set_up.devices

    @property
    def usd_per_h(self) -> float:
        """The price of all of them."""
        return self.replicas * self.set_up.usd_per_h

    @property
    def goodput_per_gpu(self) -> float | None:
        """Requests per second that keep all limits, for each accelerator."""
        rate = self.outcome.figures["throughput"]["goodput_requests_per_s"]
        return None if rate is None else float(rate) / self.gpus


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A model and an accelerator without an answer, and why."""

    model: str
    accelerator: str
    why: str


@dataclass(frozen=True, slots=True)
class Point:
    """A set-up with some number of replicas that was tried and holds the limits."""

    set_up: SetUp
    replicas: int
    usd_per_h: float
    ttft_s: float | None
    tpot_s: float | None
    goodput_per_gpu: float | None


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of a plan, the cheapest first, the groups without one, and the front of all that were tried."""

    plan: CapacityPlan
    answers: tuple[Answer, ...]
    none: tuple[NoAnswer, ...]
    front: tuple[Point, ...]


def answers_of(plan: CapacityPlan) -> Answers:
    """What a plan comes to."""
    front = pareto_front(_points(plan))
    on_front = {(id(point.set_up), point.replicas) for point in front}
    answers, none = [], []
    for group, found in plan.found.items():
        if found.best is None:
            none.append(NoAnswer(*group, _why_none(plan, found)))
        else:
            answers.append(_answer(plan, found.best, on_front))
    answers.sort(key=lambda answer: (answer.usd_per_h, answer.gpus))
    return Answers(plan, tuple(answers), tuple(none), front)


def _answer(plan: CapacityPlan, solved: Solved, on_front: set[tuple[int, int]]) -> Answer:
    set_up = plan.set_ups[solved.place]
    outcome = plan.outcomes[Try(solved.place, solved.replicas)]
    launch, notes = launch_of(set_up.alone)
    if set_up.apart is not None:
        notes = (*notes, "Prefill and decode are apart: how KV moves between replicas is the engine's to configure.")
    return Answer(
        set_up,
        solved.replicas,
        outcome,
        limited_by(outcome),
        _failure(plan, solved),
        (id(set_up), solved.replicas) in on_front,
        launch,
        notes,
    )


def _failure(plan: CapacityPlan, solved: Solved) -> Failure | None:
    fewer = solved.replicas - 1
    if fewer == 0:
        return None
    outcome = plan.outcomes.get(Try(solved.place, fewer))
    if outcome is None:
        work = plan.bounds[solved.place].work
        return Failure(fewer, f"a second of the load takes {work:.3g} s of one replica at least", None)
    return Failure(fewer, told(worst(outcome), outcome.sure), limited_by(outcome))


def _why_none(plan: CapacityPlan, found: Found) -> str:
    if not found.dearer:
        reason, count = Counter(found.impossible.values()).most_common(1)[0]
        others = len(found.impossible) - count
        return reason + (f" (and {others} set-ups for other reasons)" if others else "")
    place = min(found.dearer, key=lambda each: (found.dearer[each], each))
    tries = [tried for tried in plan.outcomes if tried.place == place]
    least = f"it takes {found.dearer[place]:.4g} USD/h or more"
    if not tries:
        return f"{least}: {plan.set_ups[place].label} needs {plan.bounds[place].replicas} replicas at least"
    most = max(tries, key=lambda tried: tried.replicas)
    outcome = plan.outcomes[most]
    return f"{least}: {most.replicas} × {plan.set_ups[place].label}, {told(worst(outcome), outcome.sure)}"


def _points(plan: CapacityPlan) -> list[Point]:
    points = []
    for tried, outcome in plan.outcomes.items():
        if outcome.holds:
            set_up = plan.set_ups[tried.place]
            metrics, rate = outcome.figures["metrics"], outcome.figures["throughput"]["goodput_requests_per_s"]
            gpus = tried.replicas * set_up.devices
            ttft_s, tpot_s = (metrics[name]["p99"] for name in ("ttft_s", "tpot_s"))
            per_gpu = None if rate is None else rate / gpus
            points.append(Point(set_up, tried.replicas, tried.replicas * set_up.usd_per_h, ttft_s, tpot_s, per_gpu))
    return sorted(points, key=lambda point: (point.usd_per_h, point.set_up.label, point.replicas))


def pareto_front(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points that no other is at least as good as in price, TTFT, TPOT and goodput per accelerator."""
    scores = [_score(point) for point in points]
    return tuple(
        point
        for point, score in zip(points, scores, strict=True)
        if not any(other != score and all(a <= b for a, b in zip(other, score, strict=True)) for other in scores)
    )


def _score(point: Point) -> tuple[float, ...]:
    figures = (point.usd_per_h, point.ttft_s, point.tpot_s)
    least = tuple(float("inf") if figure is None else round(figure, 9) for figure in figures)
    return (*least, -(point.goodput_per_gpu or 0.0))


def launch_of(document: dict[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """The command that starts one replica of a scenario on its engine, None where the engine has no server."""
    scenario = parse_scenario(document)
    launch = load_engine(scenario.engine).launch
    if launch is None:
        return None, (f"Engine preset {scenario.engine} says of no command that starts it.",)
    model = load_preset(scenario.model).repository if scenario.model in preset_names() else scenario.model
    return launch.line(model, scenario.document())
