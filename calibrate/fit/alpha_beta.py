"""The constants of ``simcore.cost.collectives``: a launch, a step around the ring, and a share of the link's rate."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from calibrate.fit.held_out import EVERY, quantiles
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.collectives import link_share, ring_steps

_OUTLIER = 0.1
"""Residuals beyond this logarithm weigh less than their square."""
_FIRST_LAUNCH_S, _FIRST_STEP_S, _FIRST_EFFICIENCY = 5e-6, 1e-6, 0.6


@dataclass(frozen=True, slots=True)
class CollectiveSamples:
    """Measurements of one operation over one kind of links, on any devices: each with its link's rate per direction."""

    operation: str
    ranks: NDArray[np.int64]
    bytes: NDArray[np.float64]
    link_bytes_per_s: NDArray[np.float64]
    latency_s: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.latency_s)

    def select(self, chosen: NDArray[np.bool_]) -> "CollectiveSamples":
        """The samples for which ``chosen`` is true."""
        return CollectiveSamples(
            self.operation,
            self.ranks[chosen],
            self.bytes[chosen],
            self.link_bytes_per_s[chosen],
            self.latency_s[chosen],
        )


@dataclass(frozen=True, slots=True)
class FittedConstants:
    """Launch and step in seconds, and the share of the link's rate that is reached."""

    launch_s: float
    step_s: float
    efficiency: float

    def seconds(self, samples: CollectiveSamples) -> NDArray[np.float64]:
        """What the model says of each sample."""
        steps, at_full_rate_s = _terms(samples)
        return self.launch_s + steps * self.step_s + at_full_rate_s / self.efficiency


def fit_constants(samples: CollectiveSamples) -> FittedConstants:
    """Least squares of log(model / measurement), outliers damped: small and large messages count alike.

    Where only one number of ranks was measured, or a single step is taken whatever the ranks, launch and step cannot
    be told apart, and the step is counted into the launch.
    """
    steps, _ = _terms(samples)
    apart = len(np.unique(steps)) > 1

    def constants(logs: NDArray[np.float64]) -> FittedConstants:
        launch_s, efficiency, *step_s = np.exp(logs)
        return FittedConstants(float(launch_s), float(step_s[0]) if step_s else 0.0, float(efficiency))

    def residuals(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.log(constants(logs).seconds(samples) / samples.latency_s))

    first = [_FIRST_LAUNCH_S, _FIRST_EFFICIENCY, *([_FIRST_STEP_S] if apart else [])]
    found = least_squares(residuals, np.log(first), loss="soft_l1", f_scale=_OUTLIER)
    return constants(found.x)


def held_out_errors(samples: CollectiveSamples) -> ErrorQuantiles:
    """Errors on every fifth size, of constants fitted to the others."""
    place = np.unique(samples.bytes, return_inverse=True)[1] + np.unique(samples.ranks, return_inverse=True)[1]
    held = place % EVERY == EVERY // 2
    unseen = samples.select(held)
    return quantiles(np.log(fit_constants(samples.select(~held)).seconds(unseen) / unseen.latency_s))


def _terms(samples: CollectiveSamples) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ranks = samples.ranks.tolist()
    steps = np.array([ring_steps(samples.operation, count) for count in ranks], dtype=np.float64)
    shares = np.array([link_share(samples.operation, count) for count in ranks])
    return steps, shares * samples.bytes / samples.link_bytes_per_s
