"""Variants of one scenario, run on the same requests and held against a baseline."""

from simcore.comparison.comparison import Comparison, Curve, Row
from simcore.comparison.evaluation import evaluate
from simcore.comparison.execution import carry_out
from simcore.comparison.plan import Plan, PlannedRun, plan_comparison

__all__ = ["Comparison", "Curve", "Plan", "PlannedRun", "Row", "carry_out", "evaluate", "plan_comparison"]
