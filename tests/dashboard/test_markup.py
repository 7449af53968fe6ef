from dashboard.formatting import number, seconds
from dashboard.markup import box, facts, figure_of, interval


def test_a_shared_unit_is_named_once():
    assert interval([0.001, 0.002], seconds) == "<small>1.00 … 2.00 ms</small>"
    assert interval([0.5, 1.5], seconds) == "<small>500 ms … 1.50 s</small>"
    assert interval([1.0, 2.0], number) == "<small>1.00 … 2.00</small>"
    assert interval(None, seconds) == ""


def test_a_missing_figure_says_why():
    assert figure_of(0.0, seconds) == "0 s"
    assert "no data" in figure_of(None, seconds)


def test_text_is_escaped_and_values_are_html():
    assert facts([("<a>", "<b>1</b>")]).count("&lt;a&gt;</th><td><b>1</b>") == 1
    assert "<li>&lt;x&gt;</li>" in box("notice", "Notices", ["<x>"])
    assert box("notice", "Notices", []) == ""
