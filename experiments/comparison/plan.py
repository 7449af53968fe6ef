"""Which runs a comparison consists of: variants of one scenario, each with the same seeds."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from experiments.comparison.compared_metrics import ComparedMetric, chosen_metrics
from experiments.comparison.fingerprint import Fingerprints
from experiments.comparison.significance import fewest_pairs
from experiments.settings import label_of, with_settings, worded
from simcore.build.simulation import Simulation
from simcore.core.errors import InputError, Phrase, UnknownNameError
from simcore.scenario.plain_data import plain_data
from simcore.workload import ClosedLoop, Sessions, Workload
from simcore.workload.batch import RequestBatch
from simcore.workload.sessions import FollowUps

_LONGEST_NAME = 80
"""Characters of the name of a run's folder."""
_MOST_SEEDS = 10_000
"""Runs are planned, and their scenarios kept, before the first starts."""

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run: the scenario in full, paths absolute, and the fingerprint of everything that its result depends on.

    ``name`` is that of its folder.
    """

    variant: str
    seed: int
    name: str
    document: Document
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A comparison, checked and ready to run.

    ``varied`` are the keys that tell the variants apart; ``notices`` sentences on how it was planned; ``runs`` has all
    variants of the first seed first.
    """

    varied: tuple[str, ...]
    variants: tuple[str, ...]
    baseline: str
    seeds: tuple[int, ...]
    metrics: tuple[ComparedMetric, ...]
    notices: tuple[str, ...]
    runs: tuple[PlannedRun, ...]

    @property
    def baseline_document(self) -> Document:
        """The scenario of the baseline with the first seed."""
        return next(run.document for run in self.runs if run.variant == self.baseline)


def plan_comparison(
    document: Mapping[str, Any],
    base_dir: Path,
    vary: Mapping[str, Sequence[Any]],
    seeds: int | None = None,
    baseline: str | None = None,
    metrics: Sequence[str] | None = None,
) -> Plan:
    """Check a comparison, every run of it included, without running anything.

    ``vary`` gives the values of each key (a dotted path as in ``override``); the variants are all their combinations.
    There are ``seeds`` runs of each, by default as few as p-values below 5% take, or 1 where the seed decides
    nothing, and their seeds count up from the scenario's. ``baseline`` is the label of the variant that the
    others are held against, or the value where only one key is varied; by default it is the first. Raises
    ``ServetwinError`` for whatever is wrong with any of this.
    """
    vary = plain_data(vary, "--vary")
    chosen = chosen_metrics(None if metrics is None else tuple(metrics))
    settings = _combinations(vary)
    labels = [label_of(setting) for setting in settings]
    baseline = _baseline(baseline, labels, settings)
    documents = [with_settings(document, setting) for setting in settings]
    if seeds is not None and seeds > 1:
        documents = [_with_traces_resampled(variant) for variant in documents]
    simulations = [Simulation.prepare(variant, base_dir) for variant in documents]
    count, notices = _number_of_seeds(seeds, documents, simulations, base_dir)
    first_seed = simulations[0].scenario.seed
    seed_range = tuple(range(first_seed, first_seed + count))
    fingerprints = Fingerprints()
    runs = []
    names = _folder_names(labels)
    for label, name, variant, simulation in zip(labels, names, documents, simulations, strict=True):
        for seed in seed_range:
            if seed != first_seed:
                simulation = Simulation.prepare({**variant, "seed": seed}, base_dir)
            complete = simulation.scenario.document()
            runs.append(PlannedRun(label, seed, f"{name}-seed{seed}", complete, fingerprints.of(complete)))
    runs.sort(key=lambda run: run.seed)  # so that an interruption leaves whole pairs
    return Plan(tuple(vary), tuple(labels), baseline, seed_range, chosen, notices, tuple(runs))


def _combinations(vary: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    for key, values in vary.items():
        if key == "seed":
            raise InputError("--vary", key, "a key other than seed, which every variant shares")
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise InputError(f"--vary {key}", values, "a list of values")
        words = [worded(value) for value in values]
        for word in words:
            if words.count(word) > 1:
                raise InputError(f"--vary {key}", ",".join(words), f"each value once, but {word} stands there twice")
    combinations = [dict(zip(vary, values, strict=True)) for values in product(*vary.values())]
    if len(combinations) < 2:
        found = Phrase("a single variant" if vary else "missing")
        raise InputError("--vary", found, "at least two variants, such as KEY=VALUE,VALUE")
    return combinations


def _baseline(asked: str | None, labels: Sequence[str], settings: Sequence[Mapping[str, Any]]) -> str:
    if asked is None or asked in labels:
        return labels[0] if asked is None else asked
    for label, setting in zip(labels, settings, strict=True):
        if [worded(value) for value in setting.values()] == [asked]:
            return label
    raise UnknownNameError("--baseline", asked, labels)


def _with_traces_resampled(document: Document) -> Document:
    """The document with every trace drawn anew by the seed, unless it says whether to."""

    def drawn(section: Any) -> Any:
        if isinstance(section, Mapping) and isinstance(section.get("streams"), list):
            return {**section, "streams": [drawn(stream) for stream in section["streams"]]}
        return {"resample": True, **section} if isinstance(section, Mapping) and "trace" in section else section

    return {**document, "workload": drawn(document["workload"])} if "workload" in document else document


def _folder_names(labels: Sequence[str]) -> list[str]:
    names = [re.sub(r"[^\w.=+-]+", "-", label).strip("-.")[:_LONGEST_NAME] or "variant" for label in labels]
    clashing = len({name.lower() for name in names}) < len(names)
    return [f"{index}-{name}" for index, name in enumerate(names, start=1)] if clashing else names


def _number_of_seeds(
    asked: int | None, documents: Sequence[Document], simulations: Sequence[Simulation], base_dir: Path
) -> tuple[int, tuple[str, ...]]:
    """How many seeds to run, and what to say about it."""
    if asked is not None and asked < 1:
        raise InputError("--seeds", asked, "a whole number of at least 1")
    if asked is not None and asked > _MOST_SEEDS:
        raise InputError("--seeds", asked, f"at most {_MOST_SEEDS}")
    if asked == 1:
        return 1, ()
    if any(_seed_matters(*pair, base_dir) for pair in zip(documents, simulations, strict=True)):
        return fewest_pairs(len(documents) - 1) if asked is None else asked, ()
    if asked is None:
        return 1, (
            "The requests are the same whatever the seed, so every variant ran once; --seeds N draws those of a trace "
            "anew.",
        )
    raise InputError("--seeds", asked, "1, since the requests are the same whatever the seed")


def _seed_matters(document: Document, simulation: Simulation, base_dir: Path) -> bool:
    """Whether another seed makes other requests, seen from the first of them."""
    other = Simulation.prepare({**document, "seed": simulation.scenario.seed + 1}, base_dir)
    one, another = (_first_requests(workload) for workload in (simulation.workload, other.workload))
    return not all(map(np.array_equal, one, another))


def _first_requests(workload: Workload) -> list[Any]:
    """The columns of the first requests, and of what follows them."""
    if isinstance(workload, Sessions):
        return [*_columns(workload.requests), *_columns(workload.follow_ups)]
    return _columns(workload.requests if isinstance(workload, ClosedLoop) else next(iter(workload.batches())))


def _columns(section: RequestBatch | FollowUps) -> list[Any]:
    return [getattr(section, column.name) for column in fields(section)]
