"""Reports as they are drawn: what stands at the axes, and what a narrow window shows."""

import pytest

from servetwin.cli import main

pytestmark = pytest.mark.long

SCENARIO = """\
model: smollm2-135m
cluster: {accelerator: h100-sxm}
workload:
  requests: 60
  arrivals: {name: poisson, rate_per_s: 200}
  prompt_tokens: {name: uniform, low: 20, high: 900}
  output_tokens: {name: uniform, low: 20, high: 100}
slo: {ttft_s: {p99: 2.0}}
"""
VARIANTS = ["1, h100-sxm", "1, h200-sxm", "2, h100-sxm", "2, h200-sxm"]
NARROW_PX = 700


@pytest.fixture
def report_of(tmp_path, monkeypatch):
    """The address of the report that a command writes."""
    (tmp_path / "s.yaml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)

    def written(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["servetwin", *arguments, "--out", "out", "-q"])
        try:
            main()
        except SystemExit as ended:
            assert not ended.code  # noqa: PT017
        return (tmp_path / "out" / "report.html").as_uri()

    return written


def drawn(page, selector: str) -> list[list[str]]:
    """The texts at a place of each figure, as the browser drew them."""
    page.locator(".js-plotly-plot .main-svg").first.wait_for()
    figures = page.locator(".js-plotly-plot").all()
    return [[text.text_content() for text in figure.locator(selector).all()] for figure in figures]


def test_every_variant_is_drawn_under_its_own_name(report_of, visitor):
    """Values that are numbers were read as places on an axis, and variants shared a row."""
    vary = ("--vary", "cluster.replicas=1,2", "--vary", "cluster.accelerator=h100-sxm,h200-sxm")
    page = visitor(report_of("compare", "s.yaml", *vary, "--seeds", "2", "--jobs", "1"))
    forests = [labels for labels in drawn(page, ".ytick text") if set(labels) & set(VARIANTS)]
    assert len(forests) > 5
    assert all(sorted(labels) == VARIANTS[1:] for labels in forests)
    legends = [labels for labels in drawn(page, ".legendtext") if labels]
    assert len(legends) >= 3
    assert all(labels == VARIANTS for labels in legends)


def test_numbers_alone_say_what_they_are_of(report_of, visitor):
    page = visitor(report_of("compare", "s.yaml", "--vary", "cluster.replicas=1,2,4", "--seeds", "2", "--jobs", "1"))
    forests = [labels for labels in drawn(page, ".ytick text") if sorted(labels) == ["replicas=2", "replicas=4"]]
    assert len(forests) > 5


def test_a_narrow_window_cuts_no_percentile_off(report_of, visitor):
    page = visitor(report_of("run", "s.yaml"))
    page.set_viewport_size({"width": NARROW_PX, "height": 1000})
    heads = {head.text_content(): head.bounding_box() for head in page.locator("th").all()}
    for name in ("P50", "P99", "P99.9", "Max", "Verdict"):
        assert 0 < heads[name]["x"] < heads[name]["x"] + heads[name]["width"] <= NARROW_PX
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW_PX
