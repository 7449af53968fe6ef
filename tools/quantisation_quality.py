"""Write ``docs/results/quantisation.md``: ``python tools/quantisation_quality.py [--check]``, seconds on one core.

With ``--check`` nothing is written, and the exit code is 1 if the document differs from what would be.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent, fill

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

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
Format = Callable[[Matrix], Matrix]
Table = list[list[str]]


def gaussian(generator: np.random.Generator, height: int, width: int) -> Matrix:
    """Normal numbers of deviation 1."""
    return generator.standard_normal((height, width))


def heavy_tailed(generator: np.random.Generator, height: int, width: int) -> Matrix:
    """Numbers of Student's t distribution with 5 degrees of freedom."""
    return generator.standard_t(5, (height, width))


def with_outlier_channels(generator: np.random.Generator, height: int, width: int) -> Matrix:
    """Normal numbers, in one channel of 128 with a deviation of 30."""
    x = generator.standard_normal((height, width))
    x[:, generator.choice(width, width // 128, replace=False)] *= 30
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


INTRODUCTION = """
    Made by `tools/quantisation_quality.py`, figures and all: what each format loses of random numbers. An error is
    the norm of (read - exact) over that of the exact. The numbers are Gaussian, of Student's t distribution with 5
    degrees of freedom (heavy tails), or Gaussian with *outliers*: one channel of 128 is thirty times as large as the
    rest, much as SmoothQuant describes activations and KIVI keys. These figures rank formats; what an error costs in
    answers has to be measured on the model at hand.
"""
EIGHT_BIT_TEXT = f"""
    ## Weights and activations in 8 bits

    Error of a linear layer's output ({CHANNELS} inputs, {OUTPUTS} outputs, {TOKENS} tokens), plain and after
    SmoothQuant (Xiao et al., 2023; alpha 0.5, calibrated on as many other tokens). Weights are Gaussian; with Student's
    activations they are Student's too.
"""
INPUTS_TEXT = """
    With outliers the output above is mostly theirs, and hides what happens to the rest. So here is the error of the
    activations, of all together and of the median channel.
"""
WEIGHTS_TEXT = f"""
    ## Weights alone

    Activations stay in 16 bits. The error of a layer's output is that of its weights, as long as inputs are not
    correlated. Bits per weight count scales and zero points, at {CHANNELS} inputs. Rounding is to nearest, and the
    scales of integers are taken as exact; GPTQ and AWQ choose roundings and scales by data, and should do better on it
    at the same bits.
"""
KV_TEXT = f"""
    ## KV caches

    Keys or values of {KV_HEADS} heads of {HEAD_DIM} and {KV_TOKENS} tokens, each head of another magnitude, errors
    averaged over heads. The last column is the median channel of heads with outliers. The kernels here keep scales per
    token and head; a scale per channel can only be known when all the tokens that share it are.
"""
CHOICE_TEXT = """
    ## How to choose

    - **fp8 e4m3 for weights and activations, where the GPU has it.** Its error is the same for every distribution here
    and nearly so for every scale, since it rounds relative to each number: nothing to calibrate, and smoothing brings
    nothing. Choose the scale that the kernel is fastest with.

    - **int8 for weights and activations** is finer than fp8 on tame numbers, but only with scales per token and output
    channel, and it loses its lead where there are outliers: the median channel is then off by several times the error
    of fp8. SmoothQuant wins most of that back. It is the choice for GPUs without fp8, smoothed.

    - **4-bit weights** shrink what decoding reads; most of the gain is in going from a scale per channel to groups of
    128. A zero point buys about as much as halving the group, at fewer bits. At equal bits mxfp4 is much like int4 in
    groups of 64 and nvfp4 like int4 in groups of 32, or better with heavy tails.

    - **KV in int8, per token and head**, is finer than fp8 unless keys have outliers; then all other channels of a head
    share a scale made for them, and **fp8** is the safe choice. One scale per tensor is only good enough for fp8.

    - **KV in int4** per token and head loses most of what the other channels of such keys say. It needs scales per
    channel for keys (KIVI) and zero points, and has no kernel here.
"""


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
        smooth = smoothing(calibration, weights, 0.5)
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


def markdown(table: Table) -> Iterator[str]:
    """A table, its first row the header."""
    header, *rows = table
    yield ""
    yield f"| {' | '.join(header)} |"
    yield f"|---|{'---:|' * (len(header) - 1)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def prose(text: str) -> Iterator[str]:
    """Paragraphs, headings and list items, folded."""
    for paragraph in dedent(text).strip().split("\n\n"):
        yield ""
        indent = "  " if paragraph.startswith("- ") else ""
        yield fill(" ".join(paragraph.split()), 120, subsequent_indent=indent, break_on_hyphens=False)


def document() -> Iterator[str]:
    """The lines of the document."""
    yield "# Quantisation"
    yield from prose(INTRODUCTION)
    outputs, inputs = eight_bit_tables()
    yield from prose(EIGHT_BIT_TEXT)
    yield from markdown(outputs)
    yield from prose(INPUTS_TEXT)
    yield from markdown(inputs)
    yield from prose(WEIGHTS_TEXT)
    yield from markdown(weight_table())
    yield from prose(KV_TEXT)
    yield from markdown(kv_table())
    yield from prose(CHOICE_TEXT)


def main(check: bool) -> int:
    """Write the document, or compare; returns the exit code."""
    text = "\n".join(document()) + "\n"
    if check:
        return int(not DOCUMENT.exists() or DOCUMENT.read_text(encoding="utf-8") != text)
    DOCUMENT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
