"""From a YAML file, or a mapping, to a checked scenario."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from simcore.core.errors import FileError, InputError
from simcore.core.validation import explain
from simcore.core.yaml_text import parse_yaml, read_yaml, yaml_problem
from simcore.engines import DEFAULT_ENGINE, default_limits, engine_names, load_engine
from simcore.hardware import accelerator_names, load_accelerator
from simcore.scenario.plain_data import MOST_LEVELS, plain_data
from simcore.scenario.policy_choice import (
    complete_policy,
    with_data_parallel_ranks,
    with_limits_of_groups,
    with_objectives,
)
from simcore.scenario.pools import in_pool, merged, pool_documents, whole_pool
from simcore.scenario.renamed import refuse_old_names
from simcore.scenario.sections import Gateway, Scaling, Scenario

GATEWAY = ("hedging", "ejection", "output_limit")
"""The kinds of policies that a gateway has, by its fields."""


def read_scenario(path: Path) -> dict[str, Any]:
    """The document in a YAML file, not yet checked; raises ``FileError`` if there is none."""
    document = read_yaml(path)
    if not isinstance(document, dict):
        found = "is empty" if document is None else "holds no mapping"
        raise FileError(path, f"{found}, expected a mapping of model, cluster, workload and so on")
    if isinstance(document.get("host"), str):
        document["host"] = _host_file(path.parent / document["host"])
    return document


def _host_file(path: Path) -> dict[str, Any]:
    """The section ``host`` of a file of its own, such as ``servetwin fidelity --adapt`` writes."""
    found = read_yaml(path)
    if not isinstance(found, dict) or list(found) != ["host"] or not isinstance(found["host"], dict):
        raise FileError(path, "expected a mapping with the section host and nothing else")
    return found["host"]


def override(document: Mapping[str, Any], assignments: Iterable[str]) -> dict[str, Any]:
    """The document with every ``key=value`` applied in turn: the key a dotted path, the value in YAML.

    The value takes the place of what stood there, whole sections included; everything beside it stays. Raises
    ``InputError`` for what is no assignment.
    """
    changed = _with_named_policies(plain_data(document, "the scenario"))
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        path = key.strip().split(".")
        if len(path) > MOST_LEVELS:
            raise InputError("--set", assignment, f"a key of at most {MOST_LEVELS} levels")
        if not equals or not all(path):
            raise InputError("--set", assignment, "KEY=VALUE, such as workload.arrivals.rate_per_s=12")
        try:
            value = parse_yaml(text)
        except yaml.YAMLError as error:
            raise InputError(f"--set {key}", text, f"a value in YAML ({yaml_problem(error)})") from None
        changed = _with_named_policies(_replaced(changed, path, plain_data(value, f"--set {key}")))
    return changed


def _replaced(document: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    first, *rest = path
    if rest:
        value = _replaced_below(document.get(first), rest, value)
    return {**document, first: value}


def _replaced_below(below: Any, path: Sequence[str], value: Any) -> Any:
    """What stands at a key with a value further down replaced; a number in the path counts a list's items from 0."""
    if isinstance(below, list) and path[0].isdecimal() and int(path[0]) < len(below):
        place, rest = int(path[0]), path[1:]
        item = _replaced_below(below[place], rest, value) if rest else value
        return [*below[:place], item, *below[place + 1 :]]
    return _replaced(below if isinstance(below, Mapping) else {}, path, value)


def parse_scenario(document: Mapping[str, Any]) -> Scenario:
    """Check a document and fill in what the engine preset and the defaults say.

    Raises ``InputError`` for the first thing that is wrong with it.
    """
    document = plain_data(document, "the scenario")
    refuse_old_names(document)
    scenario = _complete(document)
    if scenario.cluster.pools is None:
        return scenario
    pools = []
    for place, alone in enumerate(pool_documents(_with_named_policies(document))):
        try:
            pools.append(whole_pool(scenario.cluster.pools[place], scenario, _complete(alone)))
        except InputError as error:
            raise in_pool(error, place, document["cluster"]["pools"][place]) from error
    return scenario.model_copy(update={"cluster": scenario.cluster.model_copy(update={"pools": pools})})


def _complete(document: Mapping[str, Any]) -> Scenario:
    """A scenario with all that presets and defaults say, its pools as they are stated."""
    engine = document.get("engine", DEFAULT_ENGINE)
    if not isinstance(engine, str):
        raise InputError("engine", engine, f"one of {', '.join(engine_names())}")
    preset = load_engine(engine)
    complete = merged(_with_limits(preset.settings, engine, document), _with_named_policies(document))
    try:
        scenario = Scenario.model_validate(complete)
    except ValidationError as error:
        raise explain(error, Scenario) from error
    scheduler, cluster, objectives = scenario.scheduler, scenario.cluster, scenario.slo.model_dump()
    batching: Mapping[str, Any] = scheduler.batching
    if preset.limits_per_data_parallel_rank:
        stated = _batching_stated(document)
        batching = with_limits_of_groups("batching", batching, stated, cluster.data_parallel)
    batching = with_data_parallel_ranks("batching", batching, cluster.data_parallel)
    victim = complete_policy("preemption", scheduler.preemption.victim, "scheduler.preemption.victim")
    scheduler = scheduler.model_copy(
        update={
            "admission": [
                complete_policy("admission", policy, f"scheduler.admission.{index}")
                for index, policy in enumerate(scheduler.admission)
            ],
            "ordering": _completed("ordering", scheduler.ordering, objectives),
            "batching": _completed("batching", batching, objectives),
            "preemption": scheduler.preemption.model_copy(update={"victim": victim}),
        }
    )
    routing = complete_policy("routing", with_objectives("routing", cluster.routing, objectives), "cluster.routing")
    handover = cluster.handover
    if handover is not None:
        onward = complete_policy("routing", handover.routing, "cluster.handover.routing")
        handover = handover.model_copy(update={"routing": onward})
    gateway = None if scenario.gateway is None else _whole_gateway(scenario.gateway)
    assignment = cluster.assignment
    if assignment is not None:
        assignment = complete_policy("assignment", assignment, "cluster.assignment")
    migration = cluster.migration
    if migration is not None:
        moving = complete_policy("migration", migration.policy, "cluster.migration.policy")
        migration = migration.model_copy(update={"policy": moving})
    completed = {"routing": routing, "handover": handover, "assignment": assignment, "migration": migration}
    cluster = cluster.model_copy(update={**completed, "scaling": _scaling(scenario)})
    cache = scenario.memory.prefix_cache
    eviction = complete_policy("eviction", cache.eviction, "memory.prefix_cache.eviction")
    cache = cache.model_copy(update={"eviction": eviction})
    memory = scenario.memory.model_copy(update={"prefix_cache": cache})
    return scenario.model_copy(
        update={"scheduler": scheduler, "cluster": cluster, "memory": memory, "gateway": gateway}
    )


def _scaling(scenario: Scenario) -> Scaling | None:
    scaling = scenario.cluster.scaling
    if scaling is None:
        return None
    policy = with_objectives("scaling", scaling.policy, scenario.slo.model_dump())
    return scaling.model_copy(update={"policy": complete_policy("scaling", policy, "cluster.scaling.policy")})


def _with_limits(
    settings: Mapping[str, Mapping[str, Any]], engine: str, document: Mapping[str, Any]
) -> Mapping[str, Mapping[str, Any]]:
    """The settings with the limits of an engine's version on the accelerator of a document, if both are known."""
    cluster = document.get("cluster")
    name = cluster.get("accelerator") if isinstance(cluster, Mapping) else None
    if not isinstance(name, str) or name not in accelerator_names():
        return settings
    limits = default_limits(engine, name, load_accelerator(name).memory_bytes / 2**30)
    return merged(settings, {"scheduler": {"batching": limits}}) if limits else settings


def _batching_stated(document: Mapping[str, Any]) -> Collection[str]:
    """The keys of ``scheduler.batching`` that a document has of its own."""
    section = document.get("scheduler")
    batching = section.get("batching") if isinstance(section, Mapping) else None
    return tuple(batching) if isinstance(batching, Mapping) else ()


def _completed(kind: str, section: Mapping[str, Any], objectives: Mapping[str, Any]) -> dict[str, Any]:
    return complete_policy(kind, with_objectives(kind, section, objectives), f"scheduler.{kind}")


def _whole_gateway(section: Gateway) -> Gateway:
    """A gateway with whole policies, those that it has."""
    stated = {kind: own for kind in GATEWAY if (own := getattr(section, kind)) is not None}
    return section.model_copy(
        update={kind: complete_policy(kind, own, f"gateway.{kind}") for kind, own in stated.items()}
    )


_POLICY_LIST = ("scheduler", "admission")
_POLICY_PLACES = (
    _POLICY_LIST,
    ("cluster", "routing"),
    ("cluster", "assignment"),
    ("cluster", "handover", "routing"),
    ("cluster", "migration", "policy"),
    *(("gateway", kind) for kind in GATEWAY),
    ("cluster", "scaling", "policy"),
    ("scaling", "policy"),
    ("memory", "prefix_cache", "eviction"),
    ("scheduler", "ordering"),
    ("scheduler", "batching"),
    ("scheduler", "preemption", "victim"),
)


def _with_named_policies(document: Mapping[str, Any]) -> dict[str, Any]:
    """Let a bare name stand for a policy without parameters: ``ordering: fcfs``."""
    expanded = dict(document)
    for path in _POLICY_PLACES:
        place: Any = expanded
        for part in path:
            place = place.get(part) if isinstance(place, Mapping) else None
        if isinstance(place, str) and path != _POLICY_LIST:
            expanded = _replaced(expanded, path, {"name": place})
        elif isinstance(place, list) and path == _POLICY_LIST:
            named = [{"name": policy} if isinstance(policy, str) else policy for policy in place]
            expanded = _replaced(expanded, path, named)
    cluster = expanded.get("cluster")
    if isinstance(cluster, Mapping) and isinstance(cluster.get("pools"), list):
        pools = [_with_named_policies(pool) if isinstance(pool, Mapping) else pool for pool in cluster["pools"]]
        expanded["cluster"] = {**cluster, "pools": pools}
    return expanded
