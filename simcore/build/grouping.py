"""Pools among which a policy divides requests, be it by model, by user or by load."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from simcore.build.block_events import follows_blocks
from simcore.build.pool import PreparedPool
from simcore.core.errors import InputError, Phrase, ServetwinError
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import build_policy
from simcore.service.grouped_routing import GroupedRouting, RoutedPool


def check_assignment(scenario: Scenario, pools: Sequence[PreparedPool]) -> None:
    """Raise ``ServetwinError`` for pools that requests cannot be divided among, or could be served by the wrong one."""
    section, models = scenario.cluster.assignment, {pool.spec.name for pool in pools}
    if section is None:
        if len(models) > 1:
            raise InputError(
                "cluster.assignment", Phrase("missing"), f"a policy that says which of {', '.join(sorted(models))}"
            )
        return
    if scenario.cluster.pools is None:
        raise InputError("cluster.assignment.name", section["name"], "none without cluster.pools")
    if any(pool.role != "mixed" for pool in pools):
        raise InputError("cluster.assignment.name", section["name"], "none where pools hand over requests")
    if follows_blocks(scenario):
        raise InputError("cluster.routing.name", scenario.cluster.routing["name"], "another with cluster.assignment")
    try:
        build_policy("assignment", section, "cluster.assignment").check_pools([pool.name for pool in pools])
        for pool in pools:
            build_policy("routing", scenario.cluster.routing, "cluster.routing").check_replicas(pool.replicas)
    except ValueError as error:
        raise ServetwinError(f"cluster.assignment.{error}.") from error


def grouped_routing(scenario: Scenario, pools: Sequence[PreparedPool]) -> GroupedRouting:
    """The assignment of a scenario, over pools that each have a fresh routing policy."""
    assert scenario.cluster.assignment is not None
    places = pairwise(accumulate((pool.replicas for pool in pools), initial=0))
    routed = [
        RoutedPool(pool.name, range(*ends), build_policy("routing", scenario.cluster.routing, "cluster.routing"))
        for pool, ends in zip(pools, places, strict=True)
    ]
    return GroupedRouting(build_policy("assignment", scenario.cluster.assignment, "cluster.assignment"), routed)
