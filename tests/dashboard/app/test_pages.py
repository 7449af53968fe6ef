"""The other pages, as a visitor has them."""

from dashboard.formatting import seconds
from dashboard.what_if.setups import Pair, with_value


def captions(page):
    return " ".join(caption.value for caption in page.caption)


def test_timeline_tells_a_requests_life(visit, settle, pair):
    pair = Pair(with_value(pair.shared, "seed", 32), pair.a, pair.b)  # so that no answer is there from elsewhere
    page = visit("timeline", pair)
    desk = page.session_state["desk"]
    requests = desk.answer("A", desk._asked["A"][0]).requests
    next(widget for widget in page.number_input if widget.label == "Request").set_value(7)
    settle(page.run())
    row = list(requests["request_id"]).index(7)
    assert f"Request 7: finished, {requests['prompt_tokens'][row]:,} prompt" in captions(page)
    assert f"TTFT {seconds(float(requests['ttft_s'][row]))}" in captions(page)
    next(widget for widget in page.number_input if widget.label == "Request").set_value(-1)
    settle(page.run())
    assert page.error[0].value == "request is -1, expected a number of one of the 120 requests."


def test_a_wrong_setup_is_told_on_every_page(visit, pair):
    wrong = Pair(pair.shared, with_value(pair.a, "cluster.tensor_parallel", 3), pair.b)
    for name in ("timeline", "hardware"):
        page = visit(name, wrong)
        assert "cluster.tensor_parallel is 3" in page.error[0].value


def test_hardware_says_what_was_measured(visit, pair):
    page = visit("hardware")
    measured, side_by_side = (table.value for table in page.dataframe)
    assert {"gemm", "context attention"} <= set(measured["Kernels"])
    assert "NVIDIA H100 SXM" in " ".join(side_by_side["GPU"])
    unmeasured = Pair(pair.shared, with_value(pair.a, "cluster.accelerator", "a10g"), pair.b)
    assert "No kernels were measured" in visit("hardware", unmeasured).info[0].value


def press(page, start):
    next(button for button in page.button if button.label.startswith(start)).click()


def test_capacity_finds_the_largest_rate(visit, settle):
    page = visit("capacity")
    next(widget for widget in page.number_input if widget.label == "Rates").set_value(3)
    page.run()
    press(page, "Simulate 3 runs")
    settle(page.run())
    [shown] = [table.value for table in page.dataframe]
    assert list(shown["Rate"]) == ["2.50", "10.0", "40.0"]
    assert any("limits" in each.value for each in (*page.success, *page.error))
    next(widget for widget in page.number_input if widget.label == "Rates").set_value(1)
    settle(page.run())
    assert page.error[0].value == "the number of rates is 1, expected a whole number from 2 to 40."


def test_policies_are_compared_on_the_same_requests(visit, settle, pair):
    page = visit("policy_comparison", pair)
    next(widget for widget in page.number_input if widget.label == "Seeds").set_value(2)
    page.run()
    press(page, "Simulate 4 runs")
    settle(page.run())
    shown = page.dataframe[0].value
    assert set(shown["Policy"]) == {"fcfs", "sjf"}
    assert "baseline" in set(shown["Verdict"])
    page.multiselect[0].set_value(["fcfs"])
    settle(page.run())
    assert page.error[0].value == "the policies is 1, expected at least 2 to compare."


def test_fidelity_shows_the_committed_results(visit):
    page = visit("measured_engines")
    assert page.dataframe
    assert "two run folders" in captions(page)


def test_two_run_folders_are_held_against_each_other(visit, tmp_path, pair):
    from pathlib import Path

    from simcore.build.simulation import Simulation
    from simcore.output.run_folder import write_run_folder

    for side in ("A", "B"):
        write_run_folder(Simulation.prepare(pair.document(side), Path()).run(), tmp_path / side)
    page = visit("measured_engines", run_folders=[str(tmp_path / side) for side in ("A", "B")])
    assert "P99" in " ".join(page.dataframe[-1].value["Metric"])
