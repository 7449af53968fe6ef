"""The same simulation with prices that may be the true ones."""

from dataclasses import asdict, replace

from simcore.build.prices import host_overhead, pipeline_cost, step_cost
from simcore.build.simulation import Simulation
from simcore.cost.uncertainty import Draw, DrawnPrices, drawn_host


def replay(simulation: Simulation, draw: Draw) -> Simulation:
    """The simulation with the prices of a draw and all else the same."""
    scenario, cost = simulation.scenario, simulation.cost
    host = drawn_host(host_overhead(scenario, cost.prices.profile), draw)
    drawn_scenario = scenario.model_copy(update={"host": scenario.host.model_copy(update=asdict(host))})
    prices = DrawnPrices.of(cost.prices, draw)
    spec = simulation.spec
    priced, stages = step_cost(scenario, spec, prices, host), pipeline_cost(scenario, spec, prices, host)
    return replace(simulation, scenario=drawn_scenario, cost=priced, pipeline=stages)
