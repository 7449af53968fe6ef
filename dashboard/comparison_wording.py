"""How the figures of a comparison are worded: all of one metric in one unit, differences with their sign."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.digits import figure
from dashboard.formatting import DASH, number
from experiments.comparison import Row
from simcore.metrics.metric import SECONDS, SHARE

VERDICT_WORDS = {
    "baseline": "baseline",
    "better": "better",
    "worse": "worse",
    "same": "the same",
    "unclear": "no clear difference",
    "untested": "not tested",
}
_LEAST_SHOWN_P = 0.001
_LONGEST_LABEL = 30
_COUNTED = ("requests", "preemptions")


@dataclass(frozen=True, slots=True)
class Scale:
    """The unit in which a metric is shown, and how many of it its own unit has."""

    factor: float
    unit: str

    def value(self, value: float | None) -> str:
        """A figure, without its unit."""
        return DASH if value is None else number(value * self.factor)

    def with_unit(self, value: float | None) -> str:
        """A figure and its unit, unless it is a mere count."""
        return self.value(value) if value is None or self.unit in _COUNTED else f"{self.value(value)} {self.unit}"

    def difference(self, row: Row) -> str:
        """The difference with its sign, without its unit, in the digits that its interval supports."""
        return _signed(row.difference, self.factor, _half_width(row))

    def interval(self, row: Row) -> str:
        """The confidence interval of the difference; nothing where there is none."""
        if row.low is None or row.high is None:
            return ""
        low, high = (_signed(bound, self.factor, _half_width(row)) for bound in (row.low, row.high))
        return f"{low} … {high}"


def _half_width(row: Row) -> float | None:
    return None if row.low is None or row.high is None else (row.high - row.low) / 2


def _signed(value: float | None, factor: float, half_width: float | None) -> str:
    if value is None:
        return DASH
    shown = figure(value * factor, half_width * factor) if half_width else number(float(value * factor))
    return f"{'+' if value > 0 else ''}{shown}"


def scale_of(rows: Sequence[Row]) -> Scale:
    """The unit for all rows of one metric: the one that suits the baseline, or else the first value there is."""
    if rows[0].unit == SHARE:
        return Scale(100.0, "%")
    if rows[0].unit != SECONDS:
        return Scale(1.0, rows[0].unit)
    ordered = sorted(rows, key=lambda row: row.verdict != "baseline")
    reference = next((abs(row.value) for row in ordered if row.value), 1.0)
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if reference * factor >= 0.9995:
            return Scale(factor, unit)
    return Scale(1e6, "µs")


def relative(row: Row) -> str:
    """The difference as a share of the baseline, with its sign, in the digits that its interval supports."""
    part, half_width = row.relative_difference, _half_width(row)
    if part is None:
        return DASH
    of_part = half_width * abs(part / row.difference) if half_width and row.difference else None
    return f"{_signed(part, 100.0, of_part)} %"


def probability(p_value: float | None) -> str:
    """A p-value in two digits; a tiny one as a bound, since its further digits mean nothing."""
    if p_value is None:
        return DASH
    return f"<{_LEAST_SHOWN_P:g}" if p_value < _LEAST_SHOWN_P else f"{p_value:.2g}"


def seeds_in_words(seeds: Sequence[int]) -> str:
    """How many seeds and which: "5 seeds (0 to 4)"."""
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]})"


def short_names(variants: Sequence[str]) -> dict[str, str]:
    """What tables and figures call each variant: its label, its values alone, or a letter where neither leaves room."""
    for names in (list(variants), [_values_of(label) for label in variants]):
        if max(map(len, names)) <= _LONGEST_LABEL and len(set(names)) == len(names):
            return dict(zip(variants, names, strict=True))
    return {label: f"variant {_letters(number)}" for number, label in enumerate(variants)}


def _values_of(label: str) -> str:
    """The label "replicas=1, accelerator=l4" without its keys: "1, l4". Parameters of policies stay as they are."""
    if "(" in label:
        return label
    return ", ".join(part.partition("=")[2] or part for part in label.split(", "))


def _letters(number: int) -> str:
    """A, B, …, Z, AA, AB, … from 0 on."""
    before, last = divmod(number, 26)
    return (_letters(before - 1) if before else "") + chr(ord("A") + last)
