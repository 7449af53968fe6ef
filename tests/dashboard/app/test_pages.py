"""The other pages, as a visitor has them."""

from dashboard.formatting import seconds
from dashboard.what_if.setups import Pair, with_value


def captions(page):
    return " ".join(caption.value for caption in page.caption)


def test_timeline_tells_a_requests_life(visit, settle):
    page = visit("timeline")
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
