"""What a fidelity report says, as tables of plain values; whoever shows them decides how."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

from experiments.bands.bands import LEVEL
from fidelity.case import Outcome, Refusal
from fidelity.deviation import coverage, deviation, grouped
from fidelity.evaluated import Evaluated
from fidelity.evaluation import Fidelity
from fidelity.left_out_tables import left_out_tables
from fidelity.post_tables import post_tables
from fidelity.replay import Replayed
from fidelity.table import Cell, Share, Table
from fidelity.worst import common_traits, worst

TTFT, TPOT = "ttft_s.mean", "tpot_s.mean"
_NAMES = {TTFT: "TTFT", TPOT: "TPOT"}
_METRICS = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "E2E", "output_tokens_per_s": "output tokens/s"}
HOPPER = ("h100-sxm", "h200-sxm")
GROUPS = ("model", "accelerator", "engine", "version", "tensor_parallel", "lengths", "concurrency")


def tables(fidelity: Fidelity) -> list[Table]:
    """All tables of a report, the most telling first."""
    found = []
    if fidelity.engine_runs is not None:
        found += _engine_runs(fidelity.engine_runs)
    if fidelity.posts is not None:
        found += [*post_tables(fidelity.posts), *_refused(fidelity.posts.refusals, "Public posts")]
    for run in fidelity.replayed:
        found += _refused([run], run.name) if isinstance(run, Refusal) else _replayed(run)
    for reference, evaluated in fidelity.references:
        found.append(_errors(reference.title, evaluated.outcomes, reference.about, reference.groups[0]))
        if reference.upper_bound:
            found.append(_upper_bound(reference.title, evaluated.outcomes))
        found += _refused(evaluated.refusals, reference.title)
    return [table for table in found if table.rows]


def _engine_runs(evaluated: Evaluated) -> list[Table]:
    found = []
    parts = _parts(evaluated.outcomes)
    found.append(_deviations("Engine runs: errors of mean TTFT and mean TPOT", "rows", parts | _subsets(parts)))
    of_known = [outcome for outcome in evaluated.outcomes if outcome.case.labels["harness"] == "known"]
    found += left_out_tables(of_known)
    found.append(_bands({**parts, "InferenceX rows": of_known, "all": list(evaluated.outcomes)}))
    for name, outcomes in parts.items():
        for label in GROUPS:
            found.append(_deviations(f"{name}, by {label.replace('_', ' ')}", label, grouped(outcomes, label)))
    for name, outcomes in parts.items():
        found += [_worst(name, outcomes, key) for key in (TTFT, TPOT)]
    return found + _refused(evaluated.refusals, "Engine runs")


def _parts(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """Dense and MoE models apart, and InferenceX rows apart from others."""
    parts: dict[str, list[Outcome]] = {}
    for harness, rows in (("known", "InferenceX rows"), ("unknown", "other rows")):
        for kind in ("dense", "MoE"):
            chosen = [o for o in outcomes if o.case.labels["harness"] == harness and o.case.labels["kind"] == kind]
            if chosen:
                parts[f"{kind}, {rows}"] = chosen
    return parts


def _subsets(parts: dict[str, list[Outcome]]) -> dict[str, list[Outcome]]:
    """Of each part the rows on H100 and H200, and those that state the engine's version, where these are not all."""
    conditions: dict[str, Callable[[Mapping[str, str]], bool]] = {
        "H100 and H200": lambda labels: labels["accelerator"] in HOPPER,
        "engine version stated": lambda labels: labels["version"] != "unstated",
    }
    found = {}
    for name, outcomes in parts.items():
        for condition, holds in conditions.items():
            chosen = [outcome for outcome in outcomes if holds(outcome.case.labels)]
            if 0 < len(chosen) < len(outcomes):
                found[f"{name}, {condition}"] = chosen
    return found


def _deviations(title: str, first: str, groups: dict[str, list[Outcome]]) -> Table:
    columns = [first.replace("_", " "), "cases"]
    for metric in _NAMES.values():
        columns += [f"{metric} median", "mean", "P90", "bias", "in band"]
    rows = []
    for name, outcomes in groups.items():
        row: list[Cell] = [name, len(outcomes)]
        for key in _NAMES:
            found = deviation(outcomes, key)
            if found is None:
                row += [None] * 5
                continue
            row += [Share(found.median), Share(found.mean), Share(found.p90), Share(found.bias, signed=True)]
            row.append(None if found.covered is None else Share(found.covered))
        rows.append(tuple(row))
    return Table(title, tuple(columns), tuple(rows))


def _bands(groups: dict[str, list[Outcome]]) -> Table:
    """Where measured values lie relative to bands; no rows where no run has any."""
    rows = []
    for name, outcomes in groups.items():
        row: list[Cell] = [name]
        for key in _NAMES:
            found = coverage(outcomes, key)
            if found is not None:
                row += [found.cases, Share(found.below), Share(found.inside), Share(found.above), found.ratio]
        if len(row) > 1:
            rows.append(tuple(row))
    columns = ["rows"]
    for metric in _NAMES.values():
        columns += [f"{metric} bands", "below", "inside", "above", "median high / low"]
    return Table(f"Engine runs: measured values in {LEVEL:.0%} bands", tuple(columns), tuple(rows))


def _worst(name: str, outcomes: Sequence[Outcome], key: str) -> Table:
    chosen = worst(outcomes, key)
    rows = []
    for outcome in chosen:
        labels, value = outcome.case.labels, outcome.simulated[key]
        setup = f"{labels['model']}, {labels['engine']}, {labels['accelerator']} x {labels['tensor_parallel']}"
        error = outcome.error(key) or 0.0
        full, slots = outcome.conditions["kv_peak_share"], outcome.conditions["decode_batch"]
        rows.append(
            (
                setup,
                labels["lengths"],
                labels["concurrency"],
                outcome.case.measured[key],
                value,
                Share(error, signed=True),
                None if full is None else Share(full),
                slots,
            )
        )
    columns = ("run", "lengths", "concurrency", "measured, s", "simulated, s", "error", "KV peak", "mean decode batch")
    return Table(f"{name}, worst {len(chosen)} by {_NAMES[key]}", columns, tuple(rows), _in_common(chosen, outcomes))


def _in_common(chosen: Sequence[Outcome], outcomes: Sequence[Outcome]) -> str:
    traits = [
        f"{trait.label.replace('_', ' ')} {trait.value} ({trait.among_worst:.0%} of them, {trait.among_all:.0%} of all)"
        for trait in common_traits(chosen, outcomes)
    ]
    return f"In common: {'; '.join(traits) or 'no label'}."


def _refused(refusals: Iterable[Refusal], title: str) -> list[Table]:
    reasons = Counter(refusal.reason for refusal in refusals)
    rows = tuple((reason, count) for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
    return [Table(f"{title}: not simulated", ("reason", "rows"), rows)]


def _replayed(run: Replayed) -> list[Table]:
    labels = run.labels
    title = f"{labels['run']} ({labels['engine']}, {labels['accelerator']} x {labels['tensor_parallel']})"
    figures = tuple(
        (
            figure.regime,
            figure.requests,
            _METRICS[figure.metric],
            figure.statistic,
            figure.measured,
            figure.simulated,
            Share(figure.error, signed=True),
            None if figure.band is None else "yes" if figure.band[0] <= figure.measured <= figure.band[1] else "no",
        )
        for figure in run.figures
    )
    series = tuple((line.quantity, float(line.measured.max()), Share(line.mean_difference)) for line in run.series)
    columns = ("load", "requests", "metric", "statistic", "measured", "simulated", "error", "in band")
    return [
        Table(title, columns, figures, "Latencies in seconds; loads as `fidelity/load_regimes.py` tells them."),
        Table(f"{labels['run']} over time", ("quantity", "measured peak", "mean difference / peak"), series),
    ]


def _errors(title: str, outcomes: Sequence[Outcome], about: str, label: str) -> Table:
    rows = []
    keys = dict.fromkeys(key for outcome in outcomes for key in outcome.case.measured)
    for key in keys:
        having = [outcome for outcome in outcomes if key in outcome.case.measured]
        groups = {"all": having, **grouped(having, label)} if not key.startswith("step_s") else {"all": having}
        for name, chosen in groups.items():
            found = deviation(chosen, key)
            if found is not None:
                shares = (Share(found.median), Share(found.mean), Share(found.p90), Share(found.bias, signed=True))
                rows.append((key, name, found.cases, *shares))
    columns = ("figure", label.replace("_", " "), "cases", "median", "mean", "P90", "bias")
    return Table(title, columns, tuple(rows), about)


def _upper_bound(title: str, outcomes: Sequence[Outcome]) -> Table:
    ratios = [
        value / outcome.case.measured[key]
        for outcome in outcomes
        for key, value in outcome.simulated.items()
        if value is not None
    ]
    above = sum(ratio > 1 for ratio in ratios)
    rows = ((len(ratios), above, median(ratios), max(ratios)),) if ratios else ()
    return Table(f"{title}, as upper bounds", ("cases", "above", "median ratio", "largest ratio"), rows)
