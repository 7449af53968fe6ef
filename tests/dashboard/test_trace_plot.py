import numpy as np
import pytest

from dashboard.trace_plot import arrival_rate, length_histogram, trace_figure, write_trace_plot
from simcore.core.errors import FileError
from simcore.workload.traces import Trace

PROMPTS = np.array([1, 1, 5, 400, 100_000])
TRACE = Trace("csv", np.array([0, 1, 2, 3, 60], dtype=np.int64) * 10**9, PROMPTS, np.array([7] * 5), 0, 0)


def test_no_request_is_lost_in_a_histogram():
    for tokens in (PROMPTS, np.array([7]), np.array([1, 2**31 - 1])):
        edges, counts = length_histogram(tokens)
        assert counts.sum() == len(tokens)
        assert (np.diff(edges) > 0).all()


def test_the_rate_integrates_to_the_requests():
    edges_s, rate_per_s = arrival_rate(TRACE.arrival_ns / 1e9)
    assert np.sum(rate_per_s * np.diff(edges_s)) == pytest.approx(5)


def test_a_trace_without_arrivals_shows_lengths_alone():
    lengths_alone = Trace("vidur", None, PROMPTS, PROMPTS, 0, 0)
    assert len(trace_figure(lengths_alone, "lengths").data) == 2
    assert len(trace_figure(TRACE, "trace").data) == 3


def test_the_page_is_self_contained(tmp_path):
    write_trace_plot(TRACE, "<b>trace</b>.csv", tmp_path / "plot.html")
    page = (tmp_path / "plot.html").read_text()
    assert [entry.name for entry in tmp_path.iterdir()] == ["plot.html"]
    assert "<script src=" not in page
    assert "&lt;b&gt;trace" in page.replace("\\u0026", "&")
    assert "Arrival rate" in page


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match="cannot be written"):
        write_trace_plot(TRACE, "trace", tmp_path / "no" / "plot.html")
