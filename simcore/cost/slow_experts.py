"""Experts of fewer bits that were measured slower than the same in bf16."""

from dataclasses import replace

from simcore.cost.calibrated import Source
from simcore.cost.kernel_prices import AUTO
from simcore.cost.operators import ExpertMatrices
from simcore.cost.step_cost import StepCost

_TOKENS = (16, 128, 1024, 8192)


def slower_than_bf16(cost: StepCost) -> list[str]:
    """The formats of experts that take longer than bf16's at every one of several numbers of tokens."""
    found = []
    default = replace(cost.prices, expert_kernels=AUTO)
    for term in cost.token_terms:
        operator, price = term.operator, term.price
        experts = None if operator is None else operator.shape
        if operator is None or not isinstance(experts, ExpertMatrices):
            continue
        if price.source is Source.ROOFLINE or experts.weights == "bf16":
            continue
        wide = default.operator(replace(operator, shape=replace(experts, weights="bf16")))
        slower = all(price.seconds(tokens) > wide.seconds(tokens) for tokens in _TOKENS)
        if wide.source is not Source.ROOFLINE and slower:
            found.append(f"experts in {experts.weights}")
    return list(dict.fromkeys(found))
