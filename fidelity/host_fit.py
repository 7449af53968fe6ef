"""Host constants fitted to measured runs, within what they can physically be, and predictions of runs left out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from fidelity.case import Outcome
from fidelity.host_shares import HostShares
from simcore.cost.assumptions import HOST_RANGES

Float64Array = NDArray[np.float64]
Constant = tuple[str, float]
"""A constant by its name and shipped value: runs that have the same share it."""

TTFT, TPOT = "ttft_s.mean", "tpot_s.mean"
_LEAST_S = 1e-6
_TTFT_WEIGHT = 0.6
"""A log error of TTFT counts so much of one of TPOT, which is measured over many more tokens."""
_OUTLIER = 0.1
"""Log errors beyond count in proportion, not squared."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Values of constants, and the half width of an 80% interval of each."""

    values: Mapping[Constant, float]
    half_widths: Mapping[Constant, float]

    def of(self, shares: HostShares) -> dict[str, float]:
        """The constants of a run that were fitted."""
        own = {name: self.values.get((name, value)) for name, value in shares.constants.items()}
        return {name: value for name, value in own.items() if value is not None}


def group_of(outcome: Outcome) -> tuple[str, str, str]:
    """Engine, model and accelerator."""
    labels = outcome.case.labels
    return labels["engine"], labels["model"], labels["accelerator"]


def fittable(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Those whose host shares are known, and that state both figures."""
    return [
        one
        for one in outcomes
        if one.host is not None and all(one.simulated.get(key) and key in one.case.measured for key in (TTFT, TPOT))
    ]


def constants_of(outcomes: Iterable[Outcome], names: Sequence[str] = tuple(HOST_RANGES)) -> list[Constant]:
    """The constants that runs have, but for those that are 0: what an engine does not do is not fitted."""
    found = {(name, one.host.constants[name]) for one in outcomes if one.host is not None for name in names}
    return sorted(constant for constant in found if constant[1] > 0)


def fit(outcomes: Sequence[Outcome], constants: Sequence[Constant], held: float = 0.0) -> Fitted:
    """The constants that runs are nearest to, each group of them counting alike.

    A constant that is ``held`` costs so much as to be moved from one end of its range to the other.

    Least squares of log(simulated / measured) of mean TTFT and TPOT, of which large ones count less (soft L1).
    """
    low, high = (np.array([HOST_RANGES[name][side] for name, _ in constants]) for side in (0, 1))
    groups = [group_of(one) for one in outcomes]
    weights = np.array([1 / np.sqrt(groups.count(group)) for group in groups])
    start = np.clip((np.array([value for _, value in constants]) - low) / (high - low), 0.01, 0.99)
    scale = float(weights.mean())
    own = partial(_residuals, outcomes, constants, weights, low, high - low)

    def residuals(place: Float64Array) -> Float64Array:
        return np.append(own(place), held * scale * (place - start))

    found = least_squares(residuals, start, bounds=(0, 1), loss="soft_l1", f_scale=_OUTLIER * scale, max_nfev=30)
    values = low + (high - low) * found.x
    freedom = max(len(found.fun) - len(constants), 1)
    curvature = np.linalg.pinv(found.jac.T @ found.jac) * 2 * found.cost / freedom
    half_widths = 1.2816 * np.sqrt(np.diag(curvature)) * (high - low)
    return Fitted(
        dict(zip(constants, values.tolist(), strict=True)), dict(zip(constants, half_widths.tolist(), strict=True))
    )


def left_out(outcomes: Iterable[Outcome]) -> dict[int, Outcome]:
    """Each outcome with every constant fitted on the groups of others, by the identity of its own."""
    known = fittable(outcomes)
    found = {}
    for group in sorted({group_of(one) for one in known}):
        others = [one for one in known if group_of(one) != group]
        if not others:
            continue
        fitted = fit(others, constants_of(others))
        for one in known:
            if group_of(one) == group:
                found[id(one)] = predicted(one, fitted)
    return found


def predicted(outcome: Outcome, fitted: Fitted) -> Outcome:
    """An outcome with other constants, its steps as they were."""
    simulated = _figures(outcome, fitted.of(outcome.host)) if outcome.host is not None else np.array([np.nan, np.nan])
    return replace(outcome, simulated={**outcome.simulated, TTFT: float(simulated[0]), TPOT: float(simulated[1])})


def _figures(outcome: Outcome, constants: Mapping[str, float]) -> Float64Array:
    shares = outcome.host
    assert shares is not None
    own = np.array([outcome.simulated[TTFT], outcome.simulated[TPOT]], dtype=np.float64)
    return np.maximum(own + shares.change(constants), _LEAST_S)


def _residuals(
    outcomes: Sequence[Outcome],
    constants: Sequence[Constant],
    weights: Float64Array,
    low: Float64Array,
    width: Float64Array,
    place: Float64Array,
) -> Float64Array:
    fitted = Fitted(dict(zip(constants, (low + width * place).tolist(), strict=True)), {})
    rows = []
    for one in outcomes:
        assert one.host is not None
        measured = np.array([one.case.measured[TTFT], one.case.measured[TPOT]])
        rows.append(np.log(_figures(one, fitted.of(one.host)) / measured))
    errors: Float64Array = np.array(rows) * weights[:, None] * np.array([_TTFT_WEIGHT, 1.0])
    return errors.ravel()
