"""The page What if: fields, errors beside them, and the command line's very numbers."""

import json
import sys

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.formatting import number, seconds
from dashboard.what_if.address import decoded, encoded
from dashboard.what_if.exports import as_yaml
from dashboard.what_if.setups import Pair, with_value
from servetwin.cli import main


def field(page, key):
    return next(
        widget for kind in ("selectbox", "number_input", "checkbox") for widget in page.get(kind) if widget.key == key
    )


def in_address(page):
    value = page.query_params["s"]
    return value if isinstance(value, str) else value[0]


def figures(page):
    return [(metric.label, metric.value) for metric in page.metric]


def without_wall_times(summary):
    return {key: value for key, value in summary.items() if key != "run"}


def test_both_setups_show_the_command_lines_numbers_to_the_digit(visit, pair, tmp_path, monkeypatch, capsys):
    pair = Pair(with_value(pair.shared, "seed", 31), pair.a, pair.b)  # so that no answer is there from elsewhere
    page = visit("what_if", pair)
    expected = []
    for side in ("A", "B"):
        (tmp_path / "scenario.yaml").write_text(as_yaml(pair.document(side)))
        monkeypatch.setattr(sys, "argv", ["servetwin", "run", str(tmp_path / "scenario.yaml"), "--json"])
        with pytest.raises(SystemExit):
            main()
        summary = json.loads(capsys.readouterr().out)
        expected += [
            ("P99 TTFT", seconds(summary["metrics"]["ttft_s"]["p99"])),
            ("P99 TPOT", seconds(summary["metrics"]["tpot_s"]["p99"])),
            ("Output tokens/s", number(summary["throughput"]["output_tokens_per_s"])),
            ("USD per 1M tokens", number(summary["cost"]["usd_per_million_output_tokens"])),
        ]
        desk = page.session_state["desk"]
        shown = desk.answer(side, desk._asked[side][0])
        assert without_wall_times(shown.summary) == without_wall_times(summary)
    assert figures(page) == expected
    assert not page.error


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("A.cluster.tensor_parallel", 3, "cluster.tensor_parallel is 3"),
        ("B.cluster.replicas", 0, "cluster.replicas is 0"),
        ("shared.workload.arrivals.rate_per_s", -1.0, "workload.arrivals.rate_per_s is -1.0"),
        ("shared.workload.requests", 10_000_000, "workload.requests is 10000000"),
        ("A.model", "llama-3.1-405b", "does not fit"),
    ],
)
def test_what_is_wrong_stands_on_the_page_and_the_rest_goes_on(key, value, words, visit, settle):
    page = visit("what_if")
    settle(field(page, key).set_value(value).run())
    assert any(words in error.value for error in page.error), [error.value for error in page.error]
    assert field(page, key).value == value
    assert not page.exception


def test_a_change_is_simulated_and_kept_in_the_address(visit, settle):
    page = visit("what_if")
    before = figures(page)
    settle(field(page, "B.cluster.accelerator").set_value("h200-sxm").run())
    assert figures(page)[:4] == before[:4]
    assert figures(page)[4:] != before[4:]
    assert decoded(in_address(page)).document("B")["cluster"]["accelerator"] == "h200-sxm"


def test_another_engine_brings_its_own_policies(visit, settle):
    page = visit("what_if")
    settle(field(page, "B.engine").set_value("orca").run())
    own = page.session_state["pair"].own("B")
    assert own["engine"] == "orca"
    assert "scheduler" not in own
    assert field(page, "B.scheduler.batching.name").value == "in-flight"


def test_any_other_setting_can_be_made(visit, settle):
    page = visit("what_if")
    page.text_area(key="A.settings").set_value("cluster.replicas=2\nmemory.gpu_memory_utilization=0.8")
    settle(next(button for button in page.button if button.label == "Set").click().run())
    own = page.session_state["pair"].own("A")
    assert own["cluster"]["replicas"] == 2
    assert own["memory"] == {"gpu_memory_utilization": 0.8}
    assert field(page, "A.cluster.replicas").value == 2


def test_a_link_is_opened_and_a_broken_one_told(visit, pair):
    page = visit("what_if")
    path = page._script_path
    link = AppTest.from_file(path, default_timeout=240)
    changed = Pair(pair.shared, with_value(pair.a, "cluster.accelerator", "l40s"), pair.b)
    link.query_params["s"] = encoded(changed)
    link.run()
    assert field(link, "A.cluster.accelerator").value == "l40s"
    broken = AppTest.from_file(path, default_timeout=240)
    broken.query_params["s"] = "broken"
    broken.run()
    assert "the address is broken" in broken.error[0].value
    assert not broken.exception


def test_many_requests_wait_for_the_button_and_can_be_cancelled(visit, settle, pair):
    many = Pair(with_value(pair.shared, "workload.requests", 60_000), pair.a, pair.b)
    page = visit("what_if", many)
    assert "press Simulate" in page.caption[-1].value
    next(button for button in page.button if button.label == "Simulate").click().run()
    cancels = [button for button in page.button if button.label == "Cancel"]
    assert len(cancels) == 2
    for button in cancels:
        button.click()
    settle(page.run())
    assert [info.value for info in page.info] == ["Cancelled."] * 2
    assert not page.metric
