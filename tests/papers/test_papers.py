"""Every paper shows its direction within seconds, and the page is what was measured last."""

from pathlib import Path

import pytest

from papers.harness.catalogue import paper_names, published_of, study_of
from papers.harness.findings import DOES_NOT_HOLD, evaluate
from papers.harness.published import Claim
from papers.harness.running import reproduce, tasks_of
from papers.harness.study import PUBLISHED
from tools.papers_page import kept_measured, main

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "docs" / "results" / "papers"
MOST_LINES = 200
NEEDS_TRACES = {"mooncake"}


@pytest.fixture
def traces(request, name, monkeypatch):
    """The folder of data for the papers that are measured on public traces."""
    if name in NEEDS_TRACES:
        monkeypatch.setenv("SERVETWIN_DATA", str(request.getfixturevalue("shared_data")))


@pytest.mark.usefixtures("traces")
@pytest.mark.parametrize("name", paper_names())
def test_the_smoke_run_shows_the_direction_of_the_whole_run(name):
    """Which is the published one, unless the page says that the claim does not hold.

    A paper none of whose directions is decided has values that the smoke run must judge as the whole run does.
    """
    findings, measured, study = reproduce(name, smoke=True)
    whole = evaluate(name, published_of(name), kept_measured(KEPT / f"{name}.json"))
    found = {finding.comparison.words: finding.ours for finding in findings.claims}
    directed = 0
    for finding in whole.claims:
        claim, ours = finding.comparison, finding.ours
        assert isinstance(claim, Claim)
        if claim.beyond is None or claim.setup != PUBLISHED or ours.low <= claim.beyond <= ours.high:
            continue
        directed += 1
        assert (found[claim.words].value > claim.beyond) == (ours.value > claim.beyond), claim.words
        if finding.verdict != DOES_NOT_HOLD:
            assert (ours.value > claim.beyond) == (claim.published_range[0] > claim.beyond), claim.words
    if not directed:
        judged = {finding.comparison.words: finding.verdict for finding in findings.claims}
        values = [finding for finding in whole.claims if finding.comparison.beyond is None]
        assert values, "a paper without directions and values has nothing that a smoke run could show"
        assert [judged[finding.comparison.words] for finding in values] == [finding.verdict for finding in values]
    assert study is study_of(name)
    assert {setup for setup, _ in measured.figures} == {PUBLISHED}


@pytest.mark.parametrize("name", paper_names())
def test_what_is_compared_is_measured(name):
    """Also that all of it was measured when the page was made."""
    published, study = published_of(name), study_of(name)
    cells = {(setup, system) for setup, systems in study.cells.items() for system in systems}
    kept = kept_measured(KEPT / f"{name}.json")
    assert set(kept.figures) == cells
    assert {len(seeds) for seeds in kept.figures.values()} == {study.full.seeds}
    for one in (*published.claims, *published.ablations, *published.sensitivity, *published.today.comparisons):
        assert (one.setup, one.of) in cells
        assert one.figure in kept.figures[one.setup, one.of][0]
        if one.over is not None:
            assert one.figure in kept.figures[one.over_setup or one.setup, one.over][0]
    assert len(tasks_of(name)) == len(cells) * study.full.seeds


@pytest.mark.parametrize("name", paper_names())
def test_charts_draw_what_was_kept(name):
    from dashboard.figures.beside_published import beside_published

    for chart in study_of(name).charts(kept_measured(KEPT / f"{name}.json"), published_of(name).curves):
        assert len(beside_published(chart).data) == len(chart.series) > 0


@pytest.mark.parametrize("name", paper_names())
def test_a_paper_is_short(name):
    module = ROOT / "papers" / f"{name.replace('-', '_')}.py"
    assert len(module.read_text(encoding="utf-8").splitlines()) < MOST_LINES


def test_the_page_is_what_was_measured():
    assert main(["--page", "--check"]) == 0


@pytest.mark.long
@pytest.mark.usefixtures("traces")
@pytest.mark.parametrize("name", paper_names())
def test_a_run_measures_what_is_kept(name):
    """The same figures in the same cells, as far as another machine's arithmetic is the same."""
    _, measured, _ = reproduce(name)
    kept = kept_measured(KEPT / f"{name}.json")
    assert measured.figures.keys() == kept.figures.keys()
    for cell, figures in measured.figures.items():
        assert list(figures) == [pytest.approx(each, rel=1e-6) for each in kept.figures[cell]], cell
