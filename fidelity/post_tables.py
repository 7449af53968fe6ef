"""Posted benchmark results as tables: errors by engine, those without doubts apart, and the worst of these."""

from collections.abc import Sequence

from fidelity.case import Outcome
from fidelity.deviation import deviation, grouped
from fidelity.evaluated import Evaluated
from fidelity.table import Cell, Share, Table

_FIGURES = {"ttft_s.mean": "TTFT", "tpot_s.mean": "TPOT", "requests_per_s": "requests/s"}
_WORST = 10


def post_tables(evaluated: Evaluated) -> list[Table]:
    """The tables of all posts that were simulated."""
    outcomes = evaluated.outcomes
    sure = [one for one in outcomes if one.case.labels["doubts"] == "none"]
    parts: dict[str, Sequence[Outcome]] = {"all": outcomes, "without doubts": sure}
    for label in ("engine", "accelerator", "kind"):
        parts |= {f"without doubts, {name}": chosen for name, chosen in grouped(sure, label).items()}
    return [_errors(parts), _worst(sure)]


def _errors(parts: dict[str, Sequence[Outcome]]) -> Table:
    rows = []
    for name, chosen in parts.items():
        row: list[Cell] = [name, len(chosen)]
        for key in _FIGURES:
            having = [one for one in chosen if key in one.case.measured]
            found = deviation(having, key) if having else None
            row += [None] * 3 if found is None else [Share(found.median), Share(found.p90), Share(found.bias, True)]
        rows.append(tuple(row))
    columns = ["posts", "cases"]
    for figure in _FIGURES.values():
        columns += [f"{figure} median", "P90", "bias"]
    note = "Benchmark results that people posted. What a post does not tell is the default of the engine's version."
    return Table("Public posts", tuple(columns), tuple(rows), note)


def _worst(outcomes: Sequence[Outcome]) -> Table:
    """Those that are furthest off in any figure."""

    def off(one: Outcome) -> float:
        return max((abs(one.error(key) or 0.0) for key in _FIGURES if key in one.case.measured), default=0.0)

    rows = []
    for one in sorted(outcomes, key=off, reverse=True)[:_WORST]:
        errors = [one.error(key) if key in one.case.measured else None for key in _FIGURES]
        labels = one.case.labels
        engine = f"{labels['engine']} {labels['version']}"
        cells = (None if error is None else Share(error, signed=True) for error in errors)
        rows.append((one.case.name, engine, *cells, _share(one, "uncalibrated_share"), _share(one, "host_share")))
    columns = ("post", "engine", *_FIGURES.values(), "priced beyond measurements", "host")
    return Table(f"Public posts, worst {_WORST} without doubts", columns, tuple(rows))


def _share(one: Outcome, condition: str) -> Cell:
    value = one.conditions.get(condition)
    return None if value is None else Share(value)
