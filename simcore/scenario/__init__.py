"""The scenario document: everything a run depends on, checked before anything runs."""

from simcore.engines import engine_names
from simcore.scenario.reading import override, parse_scenario, read_scenario
from simcore.scenario.sections import Retention, Scenario

__all__ = ["Retention", "Scenario", "engine_names", "override", "parse_scenario", "read_scenario"]
