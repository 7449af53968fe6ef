"""The set-ups among which a plan chooses: every combination of accelerator, split and settings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from experiments.planner.question import Question
from experiments.settings import with_settings, worded
from simcore.hardware import load_accelerator
from simcore.memory.capacity import tensor_parallel_reach
from simcore.scenario import parse_scenario

Document = dict[str, Any]
TENSOR, PIPELINE, EXPERT = "cluster.tensor_parallel", "cluster.pipeline_parallel", "cluster.expert_parallel"
BUDGET = "scheduler.batching.max_batched_tokens"
_SHORT = {
    "model": "model",
    "engine": "engine",
    "cluster.accelerator": "accelerator",
    TENSOR: "tp",
    PIPELINE: "pp",
    EXPERT: "ep",
    "cluster.data_parallel": "dp",
    "precision.weights": "weights",
    "precision.kv_cache": "kv",
    BUDGET: "chunk",
}
_TENSOR_PARALLEL = (1, 2, 4, 8)
_BUDGETS = (None, 2048, 512)
"""Tokens of a step; None is what the engine has by default."""


@dataclass(frozen=True, slots=True)
class SetUp:
    """A scenario whose number of replicas is still open.

    ``choices`` are the values that tell it apart from others; ``devices`` and ``usd_per_h`` are those of one replica.
    With ``apart``, a "replica" is so many replicas that prefill and so many that decode.
    """

    choices: Mapping[str, Any]
    document: Document = field(repr=False)
    devices: int
    usd_per_h: float
    apart: tuple[int, int] | None = None

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.document["model"])

    @property
    def accelerator(self) -> str:
        """The accelerator's name."""
        return str(self.document["cluster"]["accelerator"])

    @property
    def label(self) -> str:
        """What tells it apart, in few words: ``h100-sxm, tp=2``."""
        parts = [self.accelerator, *(["{} prefill + {} decode".format(*self.apart)] if self.apart else ())]
        for key, value in self.choices.items():
            if key not in ("cluster.accelerator", "model") and not (key in (TENSOR, PIPELINE, EXPERT) and value == 1):
                parts.append(f"{_SHORT.get(key, key.rpartition('.')[2])}={worded(value)}")
        return ", ".join(parts)

    def with_replicas(self, replicas: int) -> Document:
        """The scenario with so many replicas."""
        if self.apart is None:
            return with_settings(self.document, {"cluster.replicas": replicas})
        pools = [
            {"name": role, "role": role, "replicas": count * replicas}
            for role, count in zip(("prefill", "decode"), self.apart, strict=True)
        ]
        return with_settings(self.document, {"cluster.pools": pools})

    @property
    def alone(self) -> Document:
        """The scenario of one replica that does all of a request."""
        return with_settings(self.document, {"cluster.replicas": 1})


def set_ups(question: Question) -> list[SetUp]:
    """All set-ups of a question, also those that cannot work; raises ``InputError`` for settings there are not."""
    found: list[SetUp] = []
    for document, choices in _machines(question):
        axes = {**_split_axes(document, question), **question.varied}
        for values in product(*axes.values()):
            setting = {key: value for key, value in zip(axes, values, strict=True) if value is not None}
            found.append(_set_up(document, choices | setting, setting, question))
    together = _told_apart(found)
    return together + [_apart(each, ratio) for ratio in question.apart for each in together]


def _apart(set_up: SetUp, ratio: tuple[int, int]) -> SetUp:
    """The set-up with prefill and decode on replicas of their own, in this ratio."""
    parts = sum(ratio)
    return replace(set_up, devices=parts * set_up.devices, usd_per_h=parts * set_up.usd_per_h, apart=ratio)


def _machines(question: Question) -> Iterator[tuple[Document, dict[str, Any]]]:
    for model, accelerator, engine in product(question.models, question.accelerators, question.engines):
        setting = {"model": model, "engine": engine, "cluster.accelerator": accelerator}
        document = with_settings(question.document, setting)
        yield (
            document,
            {"cluster.accelerator": accelerator}
            | {
                key: value
                for key, value, several in (
                    ("model", model, question.models),
                    ("engine", engine, question.engines),
                )
                if len(several) > 1
            },
        )


def _split_axes(document: Document, question: Question) -> dict[str, Sequence[Any]]:
    """Splits and step budgets to try, where the question does not say which."""
    reach = tensor_parallel_reach(load_accelerator(document["cluster"]["accelerator"]))
    axes: dict[str, Sequence[Any]] = {}
    if TENSOR not in question.varied:
        axes[TENSOR] = [ranks for ranks in _TENSOR_PARALLEL if ranks <= reach]
    batching = parse_scenario(document).scheduler.batching
    if BUDGET not in question.varied and "max_batched_tokens" in batching and not batching.get("reject_longer"):
        default = batching["max_batched_tokens"]
        axes[BUDGET] = [budget for budget in _BUDGETS if budget is None or budget < default]
    if EXPERT not in question.varied and document["model"] in question.models_with_experts:
        axes[EXPERT] = [1, "tensor"]
    return axes


def _set_up(document: Document, choices: dict[str, Any], setting: dict[str, Any], question: Question) -> SetUp:
    if setting.get(EXPERT) == "tensor":
        ranks = setting.get(TENSOR, document["cluster"].get("tensor_parallel", 1))
        setting, choices = setting | {EXPERT: ranks}, choices | {EXPERT: ranks}
    changed = with_settings(document, setting)
    cluster = changed["cluster"]
    names = ("tensor_parallel", "pipeline_parallel", "data_parallel", "context_parallel")
    devices = 1
    for name in names:
        devices *= int(cluster.get(name, 1))
    accelerator = cluster["accelerator"]
    price = question.prices.get(accelerator)
    if price is not None:
        changed = with_settings(changed, {"cluster.price_usd_per_h": price})
    each = cluster.get("price_usd_per_h") if price is None else price
    each = load_accelerator(accelerator).price_usd_per_h if each is None else each
    return SetUp(choices, changed, devices, devices * float(each))


def _told_apart(found: Sequence[SetUp]) -> list[SetUp]:
    """Each scenario once, in order, and checked."""
    seen: set[str] = set()
    apart = []
    for set_up in found:
        key = worded(set_up.document)
        if key not in seen:
            parse_scenario(set_up.document)
            seen.add(key)
            apart.append(set_up)
    return apart
