"""Each pool of a cluster as a scenario of its own, of which its replicas are the whole cluster."""

from collections.abc import Mapping
from typing import Any

from simcore.core.errors import InputError
from simcore.scenario.sections import Cluster, Devices, Pool, Scenario

SECTIONS = ("precision", "memory", "scheduler", "host", "pricing", "efficiency")
"""The sections that a pool may state otherwise."""


def pool_scenarios(scenario: Scenario) -> tuple[Scenario, ...]:
    """A scenario for each pool of a complete one, in order; the scenario itself where all replicas are alike."""
    if scenario.cluster.pools is None:
        return (scenario,)
    return tuple(_alone(scenario, pool) for pool in scenario.cluster.pools)


def _alone(scenario: Scenario, pool: Pool) -> Scenario:
    devices = {name: getattr(pool, name) for name in Devices.model_fields}
    own = {name: getattr(pool, name) for name in SECTIONS if getattr(pool, name) is not None}
    if pool.scheduler is not None:
        own["scheduler"] = pool.scheduler.model_copy(update={"admission": scenario.scheduler.admission})
    shared = {name: getattr(scenario.cluster, name) for name in ("routing", "assignment", "migration")}
    cluster = Cluster(**devices, **shared)
    model, engine = pool.model or scenario.model, pool.engine or scenario.engine
    return scenario.model_copy(update={"cluster": cluster, "model": model, "engine": engine, **own})


def pool_documents(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same of a document that is not complete yet, but whose pools have been checked one by one."""
    cluster = document["cluster"]
    shared = {name: cluster[name] for name in Devices.model_fields if name in cluster}
    found = []
    for pool in cluster["pools"]:
        devices = {**shared, **{name: pool[name] for name in Devices.model_fields if name in pool}}
        alone = {**document, "cluster": devices}
        alone |= {name: pool[name] for name in ("model", "engine") if pool.get(name) is not None}
        for name in SECTIONS:
            if pool.get(name) is not None:
                alone[name] = merged(document.get(name) or {}, pool[name])
        found.append(alone)
    return found


def whole_pool(pool: Pool, scenario: Scenario, alone: Scenario) -> Pool:
    """The pool with what it takes from its preset filled in, as far as that is not as in the whole scenario."""
    own: dict[str, Any] = {name: getattr(alone, name) for name in SECTIONS}
    own["scheduler"] = alone.scheduler.model_copy(update={"admission": scenario.scheduler.admission})
    differing = {name: section if section != getattr(scenario, name) else None for name, section in own.items()}
    if differing["scheduler"] is not None:
        differing["scheduler"] = alone.scheduler.model_copy(update={"admission": []})
    engine = None if alone.engine == scenario.engine else alone.engine
    return pool.model_copy(update={**differing, "engine": engine, "scaling": alone.cluster.scaling})


def in_pool(error: InputError, place: int, stated: Mapping[str, Any]) -> InputError:
    """The error with the name that its field has in the pool; fields that the pool does not state stay as they are."""
    section, _, rest = error.field.partition(".")
    if section == "cluster" and rest.partition(".")[0] in Devices.model_fields:
        return InputError(f"cluster.pools.{place}.{rest}", error.value, error.expected, error.nearest)
    if section in ("model", "engine") or stated.get(section) is not None:
        return InputError(f"cluster.pools.{place}.{error.field}", error.value, error.expected, error.nearest)
    return error


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid over ``base``; a section that names another policy replaces the one below it whole."""
    found = dict(base)
    for key, value in over.items():
        below = found.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            renamed = "name" in value and value["name"] != below.get("name", value["name"])
            found[key] = dict(value) if renamed else merged(below, value)
        else:
            found[key] = value
    return found
