"""What a planner is asked: the requests, the limits, and what to choose among."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.planner.load import Load
from experiments.planner.stages import DEFAULT_MOST_REQUESTS, Stage, stages_of
from experiments.settings import with_settings
from simcore.core.errors import InputError, Phrase, UnknownNameError
from simcore.engines import DEFAULT_ENGINE, engine_names
from simcore.hardware import accelerator_names, load_accelerator
from simcore.models import load_model
from simcore.models.spec import MixtureOfExperts
from simcore.scenario import parse_scenario
from simcore.scenario.paths import with_absolute_paths
from simcore.scenario.plain_data import plain_data
from simcore.workload import build_workload

Document = dict[str, Any]
_DECIDED = (
    "accelerator",
    "replicas",
    "tensor_parallel",
    "pipeline_parallel",
    "data_parallel",
    "expert_parallel",
    "pools",
)
"""Keys of a scenario's cluster that a plan decides, whatever the scenario says."""
_SOLVED = ("cluster.replicas", "cluster.accelerator", "model", "engine", "workload", "slo", "seed")


@dataclass(frozen=True, slots=True)
class Question:
    """A checked question.

    ``document`` is the scenario but for what is to be chosen, its paths absolute; ``varied`` has further keys with the
    values to choose among; ``prices`` are of accelerators, USD per hour; ``stages`` are the runs that a trial may take;
    ``apart`` has ratios of replicas that prefill to those that decode, to be tried beside replicas that do both.
    """

    document: Document
    models: tuple[str, ...]
    accelerators: tuple[str, ...]
    engines: tuple[str, ...]
    varied: Mapping[str, Sequence[Any]]
    prices: Mapping[str, float]
    budget_usd_per_h: float | None
    load: Load = field(repr=False)
    stages: tuple[Stage, ...]
    models_with_experts: frozenset[str]
    apart: tuple[tuple[int, int], ...] = ()

    @property
    def objectives(self) -> Mapping[str, Mapping[str, float]]:
        """The limits by metric and percentile, seconds."""
        return {metric: limits for metric, limits in self.document["slo"].items() if limits}


def ask(
    document: Mapping[str, Any],
    base_dir: Path,
    *,
    slo: Mapping[str, Mapping[str, float]] | None = None,
    models: Sequence[str] = (),
    accelerators: Sequence[str] = (),
    engines: Sequence[str] = (),
    vary: Mapping[str, Sequence[Any]] | None = None,
    rate_per_s: float | None = None,
    prices: Mapping[str, float] | None = None,
    budget_usd_per_h: float | None = None,
    most_requests: int = DEFAULT_MOST_REQUESTS,
    apart: Sequence[tuple[int, int]] = (),
) -> Question:
    """Check a question; files are looked up from ``base_dir``.

    By default all accelerators but processors are candidates, and the model and engine are the scenario's. Of the
    scenario's cluster, the accelerator, replicas and splits do not count. Raises ``ServetwinError`` for whatever is
    wrong with it.
    """
    document = plain_data(document, "the scenario")
    varied = _checked_axes(vary or {})
    models = tuple(models) or _stated(document, "model", "--models")
    accelerators = tuple(accelerators) or graphics_processors()
    engines = tuple(engines) or (str(document.get("engine", DEFAULT_ENGINE)),)
    cluster = {key: value for key, value in (document.get("cluster") or {}).items() if key not in _DECIDED}
    cluster.pop("price_usd_per_h", None)
    whole = {
        **document,
        "model": models[0],
        "engine": engines[0],
        "cluster": cluster | {"accelerator": accelerators[0]},
    }
    if slo is not None:
        whole["slo"] = slo
    checked = with_absolute_paths(parse_scenario(whole), base_dir)
    complete = checked.document()
    whole["workload"] = complete["workload"]
    whole["slo"] = {metric: limits for metric, limits in complete["slo"].items() if limits}
    if not whole["slo"]:
        raise InputError("slo", Phrase("missing"), "limits such as ttft_p99=0.5,tpot_p99=0.05")
    if isinstance(whole.get("pricing"), Mapping) and "profile" in whole["pricing"]:
        whole = with_settings(whole, {"pricing.profile": complete["pricing"]["profile"]})
    load = Load.of(build_workload(checked.workload, checked.seed, base_dir), whole["workload"])
    if rate_per_s is not None:
        whole["workload"] = with_rate(whole["workload"], rate_per_s, load)
        again = parse_scenario(whole)
        load = Load.of(build_workload(again.workload, again.seed, base_dir), whole["workload"])
    models = tuple(_path_or_name(name, base_dir) for name in models)
    _check_names(accelerators, engines, prices or {}, budget_usd_per_h, most_requests)
    return Question(
        document=whole,
        models=models,
        accelerators=tuple(_path_or_name(name, base_dir) for name in accelerators),
        engines=engines,
        varied=varied,
        prices=dict(prices or {}),
        budget_usd_per_h=budget_usd_per_h,
        load=load,
        stages=stages_of(load, whole["slo"], most_requests),
        models_with_experts=frozenset(name for name in models if _has_experts(name)),
        apart=tuple(apart),
    )


def graphics_processors() -> tuple[str, ...]:
    """The accelerators known by name whose multiprocessors have memory of their own, which those of a CPU lack."""
    known = map(load_accelerator, accelerator_names())
    return tuple(found.name for found in known if found.shared_memory_per_multiprocessor_bytes)


def with_rate(section: Mapping[str, Any], rate_per_s: float, load: Load) -> Document:
    """A workload's section with requests at another rate.

    Raises ``InputError`` for one that has no single rate.
    """
    if not rate_per_s > 0:
        raise InputError("--rate", rate_per_s, "more than 0 requests per second")
    if "trace" in section and load.rate_per_s is not None:
        return {**section, "rate_scale": section.get("rate_scale", 1.0) * rate_per_s / load.rate_per_s}
    arrivals = section.get("arrivals") or {}
    if "rate_per_s" not in arrivals:
        raise InputError("--rate", rate_per_s, "a workload with one rate of arrivals, or a trace")
    return {**section, "arrivals": {**arrivals, "rate_per_s": rate_per_s}}


def _stated(document: Mapping[str, Any], key: str, option: str) -> tuple[str, ...]:
    if not isinstance(document.get(key), str):
        raise InputError(option, Phrase("missing"), f"the {key} to serve, as the workload's file names none")
    return (document[key],)


def _checked_axes(vary: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    for key, values in vary.items():
        if key in _SOLVED or key.partition(".")[0] in ("workload", "slo"):
            raise InputError(
                "--vary", key, "a key of the set-up other than its model, engine, accelerator and replicas"
            )
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise InputError(f"--vary {key}", values, "a list of values")
    return dict(vary)


def _check_names(
    accelerators: Sequence[str],
    engines: Sequence[str],
    prices: Mapping[str, float],
    budget_usd_per_h: float | None,
    most_requests: int,
) -> None:
    for name in accelerators:
        if not Path(name).suffix:
            load_accelerator(name)
    for name in engines:
        if name not in engine_names():
            raise UnknownNameError("--engines", name, engine_names())
    for name, price in prices.items():
        if name not in accelerators:
            raise UnknownNameError("--price", name, accelerators)
        if not 0 < price < 1e6:
            raise InputError(f"--price {name}", price, "USD per hour, more than 0")
    if budget_usd_per_h is not None and not budget_usd_per_h > 0:
        raise InputError("--budget", budget_usd_per_h, "USD per hour, more than 0")
    if most_requests < 1_000:
        raise InputError("--most-requests", most_requests, "at least 1,000")


def _path_or_name(text: str, base_dir: Path) -> str:
    beside = base_dir.absolute() / text
    return str(beside) if (Path(text).suffix in (".json", ".yaml") or "/" in text) and beside.exists() else text


def _has_experts(model: str) -> bool:
    return any(isinstance(group.feed_forward, MixtureOfExperts) for group in load_model(model).layer_groups)
