import numpy as np

from dashboard.figures.time_bins import coarse_edges, events_per_s, fine_edges, run_end_s


def test_events_that_never_came_are_not_counted():
    rates = events_per_s(np.array([0.5, 2.5, 2.6, np.nan]), np.array([0.0, 2.0, 4.0]))
    assert rates.tolist() == [0.5, 1.0]


def test_the_run_ends_with_the_last_thing_that_happens(two_replicas, make_result):
    assert run_end_s(two_replicas) == 10.0
    assert run_end_s(make_result([], [])) == 0.0
    assert run_end_s(make_result([{"arrival_s": 12.0, "state": "unfinished"}], [])) == 12.0


def test_bins_are_few_and_cover_the_run():
    for edges_s in (fine_edges(7.0), coarse_edges(7.0, 3), coarse_edges(7.0, 10**6)):
        assert (edges_s[0], edges_s[-1]) == (0.0, 7.0)
        assert 20 < len(edges_s) < 500
