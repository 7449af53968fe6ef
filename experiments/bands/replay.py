"""The same simulation with prices that may be the true ones."""

from dataclasses import asdict, replace

from simcore.build.pool import PreparedPool
from simcore.build.prices import host_overhead, pipeline_cost, step_cost
from simcore.build.simulation import Simulation
from simcore.cost.uncertainty import Draw, DrawnPrices, drawn_host


def replay(simulation: Simulation, draw: Draw) -> Simulation:
    """The simulation with the prices of a draw and all else the same."""
    pools = tuple(_redrawn(pool, draw) for pool in simulation.pools)
    scenario = simulation.scenario
    host = drawn_host(host_overhead(scenario, simulation.cost.prices.profile), draw)
    drawn_scenario = scenario.model_copy(update={"host": scenario.host.model_copy(update=asdict(host))})
    return replace(simulation, scenario=drawn_scenario, pools=pools)


def _redrawn(pool: PreparedPool, draw: Draw) -> PreparedPool:
    scenario, spec = pool.scenario, pool.spec
    host = drawn_host(host_overhead(scenario, pool.cost.prices.profile), draw)
    drawn_scenario = scenario.model_copy(update={"host": scenario.host.model_copy(update=asdict(host))})
    prices = DrawnPrices.of(pool.cost.prices, draw)
    priced, stages = step_cost(scenario, spec, prices, host), pipeline_cost(scenario, spec, prices, host)
    return replace(pool, scenario=drawn_scenario, cost=priced, pipeline=stages)
