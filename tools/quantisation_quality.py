"""Write ``docs/results/quantisation.md``: ``python tools/quantisation_quality.py [--check]``, seconds on one core.

With ``--check`` nothing is written, and the exit code is 1 if the document differs from what would be.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.page_template import filled  # noqa: E402
from tools.publishing import publish_page  # noqa: E402
from tools.quantisation_formats import (  # noqa: E402
    Matrix,
    fp8,
    integer,
    integer_with_zero_point,
    mxfp4,
    nvfp4,
    smoothing,
)

DOCUMENT = ROOT / "docs" / "results" / "quantisation.md"
TOKENS, CHANNELS, OUTPUTS = 256, 2048, 512
KV_HEADS, KV_TOKENS, HEAD_DIM = 8, 512, 128
FREEDOM = 5
OUTLIER_CHANNELS, OUTLIER_DEVIATION = 128, 30
ALPHA = 0.5
Format = Callable[[Matrix], Matrix]
Table = list[list[str]]


def gaussian(generator: np.random.Generator, height: int, width: int) -> Matrix:
    """Normal numbers of deviation 1."""
    return generator.standard_normal((height, width))


def heavy_tailed(generator: np.random.Generator, height: int, width: int) -> Matrix:
    """Numbers of Student's t distribution with ``FREEDOM`` degrees of freedom."""
    return generator.standard_t(FREEDOM, (height, width))


def with_outlier_channels(generator: np.random.Generator, height: int, width: int) -> Matrix:
    """Normal numbers, in one channel of ``OUTLIER_CHANNELS`` with a deviation of ``OUTLIER_DEVIATION``."""
    x = generator.standard_normal((height, width))
    x[:, generator.choice(width, width // OUTLIER_CHANNELS, replace=False)] *= OUTLIER_DEVIATION
    return x


ACTIVATIONS = {"Gaussian": gaussian, "Student t": heavy_tailed, "outliers": with_outlier_channels}
WEIGHTS = {"Gaussian": gaussian, "Student t": heavy_tailed}

EIGHT_BITS: dict[str, tuple[Format, Format]] = {
    "int8, a scale per tensor": (lambda x: integer(x, 8, *x.shape), lambda w: integer(w, 8, *w.shape)),
    "int8, per token and output channel": (
        lambda x: integer(x, 8, 1, x.shape[1]),
        lambda w: integer(w, 8, 1, w.shape[1]),
    ),
    "fp8, a scale per tensor": (lambda x: fp8(x, *x.shape), lambda w: fp8(w, *w.shape)),
    "fp8, per token and output channel": (lambda x: fp8(x, 1, x.shape[1]), lambda w: fp8(w, 1, w.shape[1])),
    "fp8, per token and 128 channels, and 128 x 128": (lambda x: fp8(x, 1, 128), lambda w: fp8(w, 128, 128)),
}
"""Formats of activations and weights, in pairs."""

WEIGHTS_ALONE: dict[str, tuple[float, Format]] = {
    "int8, per output channel": (8 + 32 / CHANNELS, lambda w: integer(w, 8, 1, w.shape[1])),
    "fp8, per output channel": (8 + 32 / CHANNELS, lambda w: fp8(w, 1, w.shape[1])),
    "fp8, per 128 x 128": (8 + 32 / 128**2, lambda w: fp8(w, 128, 128)),
    **{
        f"int4{', zero points' if zero_points else ''}, {name}": (
            4 + (20 if zero_points else 16) / group,
            lambda w, zero_points=zero_points, group=group: (integer_with_zero_point if zero_points else integer)(
                w, 4, 1, group
            ),
        )
        for name, group in (
            ("per output channel", CHANNELS),
            ("groups of 128", 128),
            ("groups of 64", 64),
            ("groups of 32", 32),
        )
        for zero_points in (False, True)
    },
    "mxfp4 (groups of 32)": (4 + 8 / 32, mxfp4),
    "nvfp4 (groups of 16)": (4 + 8 / 16, nvfp4),
}
"""Bits a weight takes, scales of 16 bits and zero points of 4 included for int4; and the format."""

SHARING = {
    "per tensor": (KV_HEADS * KV_TOKENS, HEAD_DIM),
    "per head": (KV_TOKENS, HEAD_DIM),
    "per token and head": (1, HEAD_DIM),
    "per channel": (KV_TOKENS, 1),
}
"""Which part of a cache of [heads x tokens, head_dim] shares a scale."""
KV_FORMATS: dict[str, Callable[[Matrix, int, int], Matrix]] = {
    "int8": lambda x, rows, columns: integer(x, 8, rows, columns),
    "fp8": fp8,
    "int4": lambda x, rows, columns: integer(x, 4, rows, columns),
    "int4, zero points": lambda x, rows, columns: integer_with_zero_point(x, 4, rows, columns),
}


def error(x: Matrix, read: Matrix) -> float:
    """``|read - x| / |x|``, by Frobenius norms."""
    return float(np.linalg.norm(read - x) / np.linalg.norm(x))


def channel_error(x: Matrix, read: Matrix) -> float:
    """The median of the errors of single channels."""
    return float(np.median(np.linalg.norm(read - x, axis=0) / np.linalg.norm(x, axis=0)))


def percent(value: float) -> str:
    """Two significant digits."""
    return f"{100 * value:.{0 if value >= 0.0995 else 1 if value >= 0.00995 else 2}f}%"


def eight_bit_tables() -> tuple[Table, Table]:
    """Errors of a layer's outputs, plain and smoothed; and of its activations, in all and of the median channel."""
    outputs = {name: [name] for name in EIGHT_BITS}
    inputs = {name: [name] for name in EIGHT_BITS}
    for seed, (distribution, draw) in enumerate(ACTIVATIONS.items()):
        generator = np.random.default_rng(seed)
        x, calibration = np.split(draw(generator, 2 * TOKENS, CHANNELS), 2)
        weights = WEIGHTS.get(distribution, gaussian)(generator, OUTPUTS, CHANNELS)
        smooth = smoothing(calibration, weights, ALPHA)
        exact = x @ weights.T
        for name, (of_activations, of_weights) in EIGHT_BITS.items():
            read = of_activations(x)
            smoothed = of_activations(x / smooth) * smooth
            outputs[name] += [
                percent(error(exact, read @ of_weights(weights).T)),
                percent(error(exact, smoothed @ (of_weights(weights * smooth) / smooth).T)),
            ]
            inputs[name] += [percent(error(x, read)), percent(channel_error(x, read))]
            if distribution == "outliers":
                inputs[name].append(percent(channel_error(x, smoothed)))
    plain = [header for name in ACTIVATIONS for header in (name, "smoothed")]
    heads = [header for name in ACTIVATIONS for header in (name, "median channel")]
    return [["format", *plain], *outputs.values()], [["format", *heads, "same, smoothed"], *inputs.values()]


def weight_table() -> Table:
    """Errors of weights, and what they take."""
    drawn = [draw(np.random.default_rng(10 + seed), OUTPUTS, CHANNELS) for seed, draw in enumerate(WEIGHTS.values())]
    rows = [
        [name, f"{bits:.2f}", *(percent(error(weights, read(weights))) for weights in drawn)]
        for name, (bits, read) in WEIGHTS_ALONE.items()
    ]
    return [["format", "bits", *WEIGHTS], *rows]


def kv_table() -> Table:
    """Errors of keys or values, averaged over heads, whose deviations go from 1/4 to 4."""
    drawn = []
    for seed, draw in enumerate(ACTIVATIONS.values()):
        generator = np.random.default_rng(20 + seed)
        drawn.append(
            [draw(generator, KV_TOKENS, HEAD_DIM) * deviation for deviation in np.logspace(-2, 2, KV_HEADS, base=2)]
        )
    rows = []
    for name, read in KV_FORMATS.items():
        for sharing, (height, width) in SHARING.items():
            row = [f"{name}, {sharing}"]
            for heads in drawn:
                out = np.split(read(np.concatenate(heads), height, width), KV_HEADS)
                row.append(percent(np.mean([error(*pair) for pair in zip(heads, out, strict=True)])))
            row.append(percent(np.mean([channel_error(*pair) for pair in zip(drawn[-1], out, strict=True)])))
            rows.append(row)
    return [["format", *ACTIVATIONS, "median channel"], *rows]


def markdown(table: Table) -> str:
    """A table, its first row the header."""
    header, *rows = table
    head = (f"| {' | '.join(header)} |", f"|---|{'---:|' * (len(header) - 1)}")
    return "\n".join((*head, *(f"| {' | '.join(row)} |" for row in rows)))


def document() -> str:
    """The whole document."""
    outputs, inputs = eight_bit_tables()
    sizes = {
        "channels": CHANNELS,
        "outputs": OUTPUTS,
        "tokens": TOKENS,
        "alpha": ALPHA,
        "freedom": FREEDOM,
        "outlier_channels": OUTLIER_CHANNELS,
        "outlier_deviation": OUTLIER_DEVIATION,
        "kv_heads": KV_HEADS,
        "kv_tokens": KV_TOKENS,
        "head_dim": HEAD_DIM,
    }
    return filled(
        Path(__file__).with_suffix(".md"),
        eight_bit_outputs=markdown(outputs),
        eight_bit_inputs=markdown(inputs),
        weights=markdown(weight_table()),
        kv=markdown(kv_table()),
        **{name: str(size) for name, size in sizes.items()},
    )


def main(check: bool) -> int:
    """Write the document, or compare; returns the exit code."""
    text = document()
    return publish_page(DOCUMENT, text, check)


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
