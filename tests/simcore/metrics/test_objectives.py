"""Who keeps a limit, who misses it, and who is undecided, on requests made by hand."""

import numpy as np
import pytest

from simcore.metrics.objectives import kept, kept_all, missed, missed_any, objectives
from simcore.scenario import parse_scenario

NAN = float("nan")
END_S = 10.0
# state, arrival, TTFT, TPOT, E2E; the limits below are 2 s, 0.1 s and 5 s
REQUESTS = {
    "keeps all": ("finished", 0.0, 1.0, 0.05, 4.0),
    "at every limit": ("finished", 0.0, 2.0, 0.1, 5.0),
    "late first token": ("finished", 0.0, 2.1, 0.05, 4.0),
    "slow tokens": ("finished", 0.0, 1.0, 0.2, 5.5),
    "one token": ("finished", 0.0, 1.0, NAN, 1.0),
    "rejected": ("rejected", 9.9, NAN, NAN, NAN),
    "waits, overdue": ("unfinished", 1.0, NAN, NAN, NAN),
    "waits, not yet due": ("unfinished", 9.0, NAN, NAN, NAN),
    "decodes, not yet due": ("unfinished", 8.0, 1.5, NAN, NAN),
    "decodes, overdue": ("unfinished", 4.0, 1.5, NAN, NAN),
    "decodes, first token late": ("unfinished", 7.0, 2.5, NAN, NAN),
}
NAMES = list(REQUESTS)
LIMITS = {"ttft_s": {"p50": 2.0}, "tpot_s": {"p50": 0.1}, "e2e_s": {"p50": 5.0}}


def table(rows):
    columns = zip(*rows, strict=True)
    return dict(zip(("state", "arrival_s", "ttft_s", "tpot_s", "e2e_s"), map(np.array, columns), strict=True))


def scenario(slo):
    document = {"model": "smollm2-135m", "cluster": {"accelerator": "l4"}, "workload": {"trace": "x.csv"}, "slo": slo}
    return parse_scenario(document)


ALL = table(REQUESTS.values())


@pytest.mark.parametrize(
    ("metric", "limit_s", "keep", "miss"),
    [
        (
            "ttft_s",
            2.0,
            {"keeps all", "at every limit", "slow tokens", "one token", "decodes, not yet due", "decodes, overdue"},
            {"late first token", "rejected", "waits, overdue", "decodes, first token late"},
        ),
        ("tpot_s", 0.1, {"keeps all", "at every limit", "late first token"}, {"slow tokens", "rejected"}),
        (
            "e2e_s",
            5.0,
            {"keeps all", "at every limit", "late first token", "one token"},
            {"slow tokens", "rejected", "waits, overdue", "decodes, overdue"},
        ),
    ],
)
def test_who_keeps_a_limit_and_who_misses_it(metric, limit_s, keep, miss):
    assert {NAMES[index] for index in np.flatnonzero(kept(ALL, metric, limit_s))} == keep
    assert {NAMES[index] for index in np.flatnonzero(missed(ALL, metric, limit_s, END_S))} == miss


def test_who_keeps_every_limit_and_who_misses_one():
    good, bad = kept_all(ALL, scenario(LIMITS)), missed_any(ALL, scenario(LIMITS), END_S)
    assert {NAMES[index] for index in np.flatnonzero(good)} == {"keeps all", "at every limit", "one token"}
    undecided = {"waits, not yet due", "decodes, not yet due"}
    assert {NAMES[index] for index in np.flatnonzero(~good & ~bad)} == undecided
    assert not (good & bad).any()


def test_without_limits_whoever_finishes_is_good_and_whoever_is_rejected_is_not():
    assert kept_all(ALL, scenario({})).tolist() == [state == "finished" for state in ALL["state"]]
    assert missed_any(ALL, scenario({}), END_S).tolist() == [state == "rejected" for state in ALL["state"]]
    assert objectives(ALL, scenario({}), ALL["arrival_s"] >= 0, END_S) is None


def test_shares_are_of_the_decided_ones_that_arrived_in_the_window():
    stated = objectives(ALL, scenario(LIMITS), ALL["arrival_s"] >= 0, END_S)
    assert {name: found["share_within"] for name, found in stated.items()} == {
        "ttft_s.p50": 6 / 10,
        "tpot_s.p50": 3 / 5,
        "e2e_s.p50": 4 / 8,
    }
    later = objectives(ALL, scenario(LIMITS), ALL["arrival_s"] >= 4.0, END_S)
    assert later["ttft_s.p50"]["share_within"] == 2 / 4
    assert later["tpot_s.p50"] == {"limit_s": 0.1, "percentile": "p50", "share_within": 0.0, "met": False}


@pytest.mark.parametrize(("percentile", "just_enough"), [("p50", 500), ("p95", 950), ("p99", 990), ("p999", 999)])
def test_an_objective_is_met_from_its_percentile_on(percentile, just_enough):
    for keep, met in ((just_enough, True), (just_enough - 1, False)):
        rows = [REQUESTS["keeps all"]] * keep + [REQUESTS["late first token"]] * (1000 - keep)
        slo = {"ttft_s": {percentile: 2.0}}
        found = objectives(table(rows), scenario(slo), np.ones(1000, dtype=bool), END_S)[f"ttft_s.{percentile}"]
        assert found == {"limit_s": 2.0, "percentile": percentile, "share_within": keep / 1000, "met": met}


@pytest.mark.parametrize("metric", ["ttft_s", "tpot_s", "e2e_s"])
def test_many_rejected_ones_do_not_read_as_met(metric):
    """All that were served kept the limit, but nine of ten were turned away."""
    rows = [REQUESTS["keeps all"]] * 10 + [REQUESTS["rejected"]] * 90
    found = objectives(table(rows), scenario({metric: {"p50": 5.0}}), np.ones(100, dtype=bool), END_S)
    assert found[f"{metric}.p50"]["share_within"] == 0.1
    assert found[f"{metric}.p50"]["met"] is False


def test_nobody_decided_is_neither_met_nor_missed():
    rows = [REQUESTS["waits, not yet due"]] * 3
    found = objectives(table(rows), scenario(LIMITS), np.ones(3, dtype=bool), END_S)
    assert {(limit["share_within"], limit["met"]) for limit in found.values()} == {(None, None)}
