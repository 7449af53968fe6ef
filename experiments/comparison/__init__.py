"""Variants of one scenario, run on the same requests and held against a baseline."""

from experiments.comparison.comparison import Comparison, Curve, Row
from experiments.comparison.evaluation import evaluate
from experiments.comparison.execution import carry_out
from experiments.comparison.plan import Plan, PlannedRun, plan_comparison

__all__ = ["Comparison", "Curve", "Plan", "PlannedRun", "Row", "carry_out", "evaluate", "plan_comparison"]
