"""A visitor's walk through the dashboard, in a real browser."""

import json
from pathlib import Path

import pytest

from dashboard.app.page_names import PAGES
from dashboard.formatting import seconds
from dashboard.what_if.address import KEY, decoded, encoded
from dashboard.what_if.setups import Pair, default_pair, with_value
from simcore.build.simulation import Simulation
from tools.dashboard_browser import settle

pytestmark = pytest.mark.long

_TRACE = "arrival_s,prompt_tokens,output_tokens\n" + "".join(f"{place / 10},200,20\n" for place in range(50))


def small(requests: int = 60, seed: int = 0) -> Pair:
    pair = default_pair()
    shared = with_value(with_value(pair.shared, "workload.requests", requests), "seed", seed)
    return Pair(shared, pair.a, pair.b)


def link(address: str, pair: Pair, page: str = "") -> str:
    return f"{address}/{page}?{KEY}={encoded(pair)}"


def setups(page) -> Pair:
    return decoded(page.evaluate(f"new URLSearchParams(location.search).get('{KEY}')"))


def enter(page, label, value, place=0):
    field = page.get_by_role("spinbutton", name=label).nth(place)
    field.fill(str(value))
    field.press("Enter")


def choose(page, label, value, place=0):
    field = page.get_by_role("combobox", name=label, exact=True).nth(place)
    field.click()
    page.get_by_role("option", name=value, exact=True).click()


def headline(page) -> list[str]:
    return [each.inner_text().strip() for each in page.get_by_test_id("stMetricValue").all()]


def p99_ttft(pair: Pair, side: str) -> str:
    summary = Simulation.prepare(pair.document(side), Path()).run().summary
    return seconds(summary["metrics"]["ttft_s"]["p99"])


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_drawn(name, address, visitor):
    page = visitor(link(address, small(), "" if name == "what_if" else name))
    settle(page)
    assert page.locator("h1").inner_text() == PAGES[name]
    assert page.get_by_test_id("stException").count() == 0
    assert page.get_by_role("alert").filter(has_text="expected").count() == 0


def test_a_change_of_gpu_changes_one_setup_and_the_address(address, visitor):
    page = visitor(link(address, small(seed=41)))
    settle(page)
    before = headline(page)
    choose(page, "GPU", "l40s", place=1)
    settle(page)
    after = headline(page)
    assert after[:4] == before[:4]
    assert after[4:] != before[4:]
    pair = setups(page)
    assert pair.document("B")["cluster"]["accelerator"] == "l40s"
    assert after[4] == p99_ttft(pair, "B")
    other = visitor(page.url)
    settle(other)
    assert headline(other) == after


def test_a_trace_is_read_and_a_broken_one_told(address, visitor):
    page = visitor(link(address, small()))
    settle(page)
    field = page.get_by_test_id("stFileUploaderDropzoneInput").first
    field.set_input_files({"name": "broken.csv", "mimeType": "text/csv", "buffer": b"arrival_s,prompt_tokens\n0,x\n"})
    settle(page)
    assert page.get_by_role("alert").filter(has_text="broken.csv").count() == 1
    page.get_by_role("button", name="Remove").first.click()
    settle(page)
    field = page.get_by_test_id("stFileUploaderDropzoneInput").first
    field.set_input_files({"name": "mine.csv", "mimeType": "text/csv", "buffer": _TRACE.encode()})
    settle(page)
    assert page.get_by_role("alert").filter(has_text="broken.csv").count() == 0
    assert page.get_by_text("50 of 50 requests finished").count() == 2
    assert setups(page).document("A")["workload"]["trace"].endswith(".csv")


def test_a_report_opens_from_disk_without_a_network(address, visitor, tmp_path):
    page = visitor(link(address, small(seed=42)))
    settle(page)
    with page.expect_download() as found:
        page.get_by_role("button", name="Report of A").click()
    found.value.save_as(tmp_path / "report.html")
    report = visitor((tmp_path / "report.html").as_uri(), offline=True)
    report.wait_for_selector(".plot .main-svg")
    assert report.locator(".plot .main-svg").count() >= 6
    assert headline(page)[0] in report.inner_text("main")
    with page.expect_download() as found:
        page.get_by_role("button", name="Summary of A").click()
    summary = json.loads(Path(found.value.path()).read_text())
    assert seconds(summary["metrics"]["ttft_s"]["p99"]) == headline(page)[0]


def test_twenty_quick_changes_lead_to_the_last(address, visitor):
    page = visitor(link(address, small(seed=43)))
    settle(page)
    for rate in range(1, 21):
        enter(page, "Rate (requests/s)", rate)
    settle(page)
    pair = setups(page)
    assert pair.document("A")["workload"]["arrivals"]["rate_per_s"] == 20
    assert headline(page)[0] == p99_ttft(pair, "A")


def test_two_visitors_do_not_mix(address, visitor):
    first, second = visitor(link(address, small(60, seed=44))), visitor(link(address, small(70, seed=45)))
    enter(second, "Replicas", 2)
    for page in (first, second):
        settle(page)
    assert "60 of 60 requests" in first.inner_text("body")
    assert "70 of 70 requests" in second.inner_text("body")
    assert setups(first).document("A")["cluster"].get("replicas", 1) == 1
    assert headline(first)[0] == p99_ttft(setups(first), "A")
    assert headline(second)[0] == p99_ttft(setups(second), "A")
