"""What fitted constants are worth: the errors of groups that a fit has not seen, beside those of one that has."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from fidelity.case import Outcome
from fidelity.deviation import deviation, grouped
from fidelity.fitted import BEFORE
from fidelity.host_fit import TPOT, TTFT, Constant, Fitted, constants_of, fit, fittable, group_of, left_out
from fidelity.table import Cell, Share, Table
from simcore.cost.assumptions import HOST_RANGES

_LOADS = (("up to 8", 0, 8), ("16 to 32", 9, 32), ("64 and more", 33, 1 << 62))
_INTERVAL = (10.0, 90.0)
_NOTE = (
    "Every constant is fitted anew without the rows of a group, an engine with a model on an accelerator, and the "
    "group is predicted with the steps that it took. `shipped` are errors with the shipped constants, which have seen "
    "all groups."
)


def left_out_tables(outcomes: Sequence[Outcome]) -> list[Table]:
    """Tables of the rows whose host constants can be fitted; none where these are of fewer than two groups."""
    known = fittable(outcomes)
    if len({group_of(one) for one in known}) < 2:
        return []
    predicted = left_out(known)
    apart = [predicted[id(one)] for one in known]
    return [_errors(known, apart), _constants(known), _intervals(apart)]


def _errors(known: Sequence[Outcome], apart: Sequence[Outcome]) -> Table:
    rows = []
    parts = {f"{kind}, all": _of_kind(known, apart, kind) for kind in ("dense", "MoE")}
    for group in sorted({group_of(one) for one in known}):
        chosen = [(one, other) for one, other in zip(known, apart, strict=True) if group_of(one) == group]
        parts[", ".join(group)] = chosen
    for name, pairs in parts.items():
        if not pairs:
            continue
        row: list[Cell] = [name, len(pairs)]
        for key in (TTFT, TPOT):
            for side in (0, 1):
                found = deviation([pair[side] for pair in pairs], key)
                assert found is not None
                row += [Share(found.median), *([Share(found.bias, signed=True)] if side else [])]
        rows.append(tuple(row))
    columns = ("group", "cases", "TTFT shipped", "left out", "bias", "TPOT shipped", "left out", "bias")
    return Table("InferenceX rows: median errors with the row's group left out", columns, tuple(rows), _NOTE)


def _of_kind(known: Sequence[Outcome], apart: Sequence[Outcome], kind: str) -> list[tuple[Outcome, Outcome]]:
    return [(one, other) for one, other in zip(known, apart, strict=True) if one.case.labels["kind"] == kind]


def _constants(known: Sequence[Outcome]) -> Table:
    """Each constant, what it was, what all rows together would make of it, what it can be, and who has it."""
    fitted = fit(known, constants_of(known))
    table = constants_table(fitted, known, "Host constants")
    rows = []
    for (name, value), row in zip(fitted.values, table.rows, strict=True):
        having = {group_of(one) for one in known if one.host is not None and one.host.constants[name] == value}
        rows.append((row[0], BEFORE.get(name, "none"), *row[1:5], f"{len(having)}: {row[5]}", row[6]))
    columns = list(table.columns)
    columns[5] = "groups fitted on"
    columns.insert(1, "before")
    return Table(table.title, tuple(columns), tuple(rows))


def constants_table(fitted: Fitted, runs: Sequence[Outcome], title: str) -> Table:
    """What runs make of constants, with 80% intervals, physical ranges and the engines that share them."""
    rows = []
    for constant in fitted.values:
        name, value = constant
        low, high, why = HOST_RANGES[name]
        half = fitted.half_widths[constant]
        best = fitted.values[constant]
        interval = f"{max(best - half, low):.2g} to {min(best + half, high):.2g}"
        rows.append((name, value, best, interval, f"{low:g} to {high:g}", _sharing(runs, constant), why))
    columns = ("constant, s", "shipped", "refitted", "80% interval", "physical range", "engines", "what it can be")
    return Table(title, columns, tuple(rows))


def _sharing(runs: Sequence[Outcome], constant: Constant) -> str:
    name, value = constant
    found = {one.case.labels["engine"] for one in runs if one.host is not None and one.host.constants[name] == value}
    return ", ".join(sorted(found))


def _intervals(apart: Sequence[Outcome]) -> Table:
    """How far measured values lie from those predicted, by engine and load; and how many fall where others did."""
    rows = []
    for engine, of_engine in grouped(apart, "engine").items():
        for load, least, most in _LOADS:
            chosen = [one for one in of_engine if least <= int(one.case.labels["concurrency"]) <= most]
            if len(chosen) < 2:
                continue
            cells = chain.from_iterable(_interval(chosen, key) for key in (TTFT, TPOT))
            rows.append((engine, load, len(chosen), *cells))
    columns = ("engine", "clients", "cases", "TTFT low", "high", "inside", "TPOT low", "high", "inside")
    note = (
        "Of ten measured values eight lie between these shares of the value predicted, with the group left out. "
        "`inside` counts a value by the interval of the other rows of its engine and load."
    )
    return Table("InferenceX rows: 80% intervals of measured over predicted", columns, tuple(rows), note)


def _interval(chosen: Sequence[Outcome], key: str) -> tuple[Cell, Cell, Cell]:
    ratios = np.array([1 / (1 + (one.error(key) or 0.0)) for one in chosen])
    low, high = np.percentile(ratios, _INTERVAL)
    inside = []
    for place, ratio in enumerate(ratios):
        least, most = np.percentile(np.delete(ratios, place), _INTERVAL)
        inside.append(least <= ratio <= most)
    return float(low), float(high), Share(float(np.mean(inside)))
