"""What is known of a kernel between measured shapes, and how surely: a Gaussian process of its time over a roofline.

Kernels of a kind with the same names (dtypes, operators) form a group. In logarithms of shape the time, divided by what
a roofline says, is a smooth function with Matern-3/2 covariance and noise (Rasmussen and
Williams, 2006, chapters 2 and 5.4). Where points that are left out are found worse than the process believes, it is
less sure around them: the deviation there is scaled by that of the errors left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from calibrate.measuring.device import KernelPoint, Value
from calibrate.samples import SHAPE_COLUMNS, TEXT_COLUMNS
from simcore.cost.calibrated.base import KV_BYTES, context_work, gemm_work, generation_work, moe_work

Floats = NDArray[np.float64]
Group = tuple[str, tuple[Value, ...]]

_LENGTHS = (0.7, 1.4, 2.8, 5.6)
"""Correlation lengths to choose among, in natural logarithms of a shape's numbers."""
_NOISES = (0.005, 0.02, 0.06)
_FLOORS = (0.02, 0.3, 0.9)
"""What a launch takes however little it does, as shares of the fastest that was measured."""
_PRIOR_DEVIATION = 0.5
"""Of a logarithm of time over the roofline, while little is known."""
_FEW = 4
_EVEN = 8
_UNEVEN = 1.0
"""How far GEMMs of tokens that are no multiple of 8 are from others, as tensor cores may take other kernels."""
_APART = ("head_dim", "heads", "kv_heads", "window", "bytes_per_token", "experts_per_token", "experts")
"""Numbers by which kernels are different ones, rather than the same at another size."""


def group_of(point: KernelPoint) -> Group:
    """What is surrogated together."""
    names = SHAPE_COLUMNS[point.kind]
    pairs = zip(names, point.shape, strict=True)
    return point.kind, tuple(value for name, value in pairs if name in TEXT_COLUMNS or name in _APART)


def features(points: Sequence[KernelPoint]) -> Floats:
    """Logarithms of the numbers of each shape that are not in its group."""
    names = SHAPE_COLUMNS[points[0].kind]
    chosen = [place for place, name in enumerate(names) if name not in TEXT_COLUMNS and name not in _APART]
    shift = np.array([16.0 if names[place] == "prefix" else 0.0 for place in chosen])
    rows = np.array([[float(point.shape[place]) for place in chosen] for point in points])
    logs = np.log(np.maximum(rows + shift, 1.0))
    if points[0].kind != "gemm":
        return np.asarray(logs)
    uneven = _UNEVEN * (rows[:, [names[place] for place in chosen].index("tokens")] % _EVEN != 0)
    return np.column_stack([logs, uneven])


def work(points: Sequence[KernelPoint]) -> tuple[Floats, Floats]:
    """Operations and bytes of each point."""
    columns = {
        name: np.array([point.shape[place] for point in points])
        for place, name in enumerate(SHAPE_COLUMNS[points[0].kind])
    }
    kind = points[0].kind
    if kind == "gemm":
        flops, moved = gemm_work(str(columns["dtype"][0]), columns["tokens"] * 1.0, columns["n"], columns["k"])
        return np.asarray(flops, dtype=np.float64), np.asarray(moved, dtype=np.float64)
    if "kv_dtype" in columns:
        kv_dtype = str(columns["kv_dtype"][0])
        kv_dtype = kv_dtype if kv_dtype in KV_BYTES else "bf16"
        heads = (columns["heads"], columns["kv_heads"], columns["head_dim"])
        if "context" in columns:
            sizes = columns["batch"] * 1.0, columns["context"] * 1.0
            found = generation_work(kv_dtype, *heads, *sizes, int(columns["window"][0]))
        else:
            window, batch = int(columns["window"][0]), columns["batch"] * 1.0
            whole = context_work(kv_dtype, *heads, window, batch, (columns["tokens"] + columns["prefix"]) * 1.0)
            before = context_work(kv_dtype, *heads, window, batch, columns["prefix"] * 1.0)
            found = whole[0] - before[0], whole[1]
        return np.asarray(found[0], dtype=np.float64), np.asarray(found[1], dtype=np.float64)
    if kind == "moe":
        names = ("hidden", "intermediate", "experts_per_token", "experts", "tensor_parallel", "expert_parallel")
        flops, moved = moe_work(str(columns["dtype"][0]), columns["tokens"] * 1.0, *(columns[name] for name in names))
        return np.asarray(flops, dtype=np.float64), np.asarray(moved, dtype=np.float64)
    if kind == "elementwise":
        moved = columns["bytes_per_token"] * columns["tokens"] * 1.0
    else:
        moved = columns.get("bytes", np.ones(len(points))) * 1.0
    return np.asarray(moved), np.asarray(moved)


@dataclass(frozen=True, slots=True)
class Peaks:
    """Rates that a device reaches at best."""

    flops_per_s: float
    bytes_per_s: float


@dataclass(slots=True)
class _Known:
    """Chosen hyperparameters and what follows from them, of so many points."""

    length: float
    inputs: Floats
    factor: tuple[Floats, bool]
    weights: Floats
    amplitude: float
    noise: float
    mean: float
    left_out: Floats


class Surrogate:
    """One group of kernels: ``add`` what was measured, ``predict`` what was not."""

    def __init__(self, peaks: Peaks | None = None) -> None:
        """``peaks`` are those of the device; of its own best samples where they are not known."""
        self._peaks = peaks
        self._points: list[KernelPoint] = []
        self._logs: list[float] = []
        self._known: _Known | None = None
        self._rates = (1e-6, 1e9, 1e9)

    def __len__(self) -> int:
        return len(self._points)

    def add(self, point: KernelPoint, latency_s: float) -> None:
        """Take note of a measurement."""
        self._points.append(point)
        self._logs.append(float(np.log(latency_s)))
        self._known = None

    def predict(self, points: Sequence[KernelPoint]) -> tuple[Floats, Floats]:
        """The logarithm of seconds at each point, and its standard deviation; the deviation of noise is not in it."""
        if not self._points:
            return np.full(len(points), np.log(1e-4)), np.full(len(points), 2.0)
        known = self._known or self._learn()
        inputs = features(points)
        across = _covariance(inputs, known.inputs, known.length)
        mean = known.mean + across @ known.weights + self._base(points)
        halves = solve_triangular(known.factor[0], across.T, lower=True)
        variance = known.amplitude * np.maximum(1.0 - np.sum(halves**2, axis=0), 1e-9)
        nearness = across + 1e-3
        scale = (nearness @ known.left_out + 1.0) / (nearness.sum(axis=1) + 1.0)
        return mean, np.sqrt(variance * np.clip(scale, 0.25, 25.0))

    def _base(self, points: Sequence[KernelPoint]) -> Floats:
        floor_s, flops_per_s, bytes_per_s = self._rates
        flops, moved = work(points)
        return np.asarray(np.log(floor_s + np.maximum(flops / flops_per_s, moved / bytes_per_s)))

    def _learn(self) -> _Known:
        """Floor, length and noise of the greatest likelihood."""
        logs = np.array(self._logs)
        seconds = np.exp(logs)
        flops, moved = work(self._points)
        own = Peaks(float(np.quantile(flops / seconds, 0.9)), float(np.quantile(moved / seconds, 0.9)))
        peaks = self._peaks or own
        inputs, most = features(self._points), -np.inf
        best, rates = None, self._rates
        for floor, length, noise in product(_FLOORS, _LENGTHS if len(logs) > _FEW else (_LENGTHS[1],), _NOISES):
            self._rates = floor * float(seconds.min()), peaks.flops_per_s, peaks.bytes_per_s
            known, likelihood = _fitted(inputs, logs - self._base(self._points), length, noise)
            if likelihood > most:
                best, most, rates = known, likelihood, self._rates
        self._rates = rates
        assert best is not None
        self._known = best
        return best


def _fitted(inputs: Floats, values: Floats, length: float, noise: float) -> tuple[_Known, float]:
    """The process with these two, its amplitude drawn to the prior as there are few points; its likelihood."""
    count, mean = len(values), float(np.median(values))
    centred = values - mean
    jitter = (noise / _PRIOR_DEVIATION) ** 2
    covariance = _covariance(inputs, inputs, length) + jitter * np.eye(count)
    factor = cho_factor(covariance, lower=True)
    lower = np.tril(factor[0])
    solved = cho_solve(factor, centred)
    prior = _PRIOR_DEVIATION**2
    amplitude = (_FEW * prior + float(centred @ solved)) / (_FEW + count)
    likelihood = -0.5 * (count + _FEW) * np.log(amplitude) - float(np.log(np.diag(lower)).sum())
    inverse = cho_solve(factor, np.eye(count))
    left_out = (solved**2 / np.diag(inverse)) / amplitude
    return _Known(length, inputs, (lower, True), solved, amplitude, noise, mean, left_out), likelihood


def _covariance(first: Floats, second: Floats, length: float) -> Floats:
    """Matern, smoothness 3/2, at amplitude 1."""
    squared = ((first[:, None, :] - second[None, :, :]) ** 2).sum(axis=2)
    distance = np.sqrt(3.0 * squared) / length
    return np.asarray((1.0 + distance) * np.exp(-distance))
