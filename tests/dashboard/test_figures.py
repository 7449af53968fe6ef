import numpy as np
import pytest

from dashboard.figures.distributions import distribution
from dashboard.figures.kv_occupancy import kv_occupancy
from dashboard.figures.lengths import histogram, length_histograms
from dashboard.figures.load import load_over_time, load_per_replica
from dashboard.figures.throughput import throughput_over_time
from dashboard.figures.ttft import ttft_over_time
from simcore.metrics.distribution import cumulative_points
from simcore.metrics.registry import latency
from simcore.metrics.statistics import of_values
from simcore.metrics.step_bins import StepBins

EDGES_S = np.linspace(0, 10, 5)


def traces(figure):
    return {trace.name: trace for trace in figure.data}


def test_a_distribution_goes_from_least_to_greatest_and_is_marked():
    values = np.array([3.0, 1.0, 2.0, np.nan, 5.0, 4.0])
    curve, marks = distribution(latency("ttft_s"), cumulative_points(values), of_values(values), "requests").data
    assert curve.x.tolist() == [1, 1, 2, 3, 4, 5, 5]
    assert curve.y.tolist() == [0, 0, 0.25, 0.5, 0.75, 1, 1]
    assert marks.x == pytest.approx([3.0, 4.6, 4.96])
    assert marks.y == pytest.approx([0.5, 0.9, 0.99])
    assert marks.text[0] == "P50 3.00 s"
    assert np.interp(marks.x, curve.x[1:-1], curve.y[1:-1]) == pytest.approx(marks.y)


def test_latencies_of_a_token_are_drawn_in_ms():
    values = np.array([0.01, 0.02])
    figure = distribution(latency("tpot_s"), cumulative_points(values), of_values(values), "requests")
    assert figure.data[0].x.max() == pytest.approx(20)
    assert figure.layout.xaxis.title.text == "TPOT (ms)"
    assert figure.layout.xaxis.type == "linear"


def test_an_axis_is_logarithmic_where_values_span_decades():
    values = np.array([0.01, 0.5, 2.0])
    assert (
        distribution(latency("e2e_s"), cumulative_points(values), of_values(values), "requests").layout.xaxis.type
        == "log"
    )
    values[0] = 0.0
    assert (
        distribution(latency("e2e_s"), cumulative_points(values), of_values(values), "requests").layout.xaxis.type
        == "linear"
    )


def test_a_single_value_can_be_drawn():
    figure = distribution(latency("ttft_s"), cumulative_points(np.array([2.0])), of_values(np.array([2.0])), "requests")
    assert figure.data[0].y.tolist() == [0, 0, 1]
    low, high = figure.layout.xaxis.range
    assert low < 2 < high


def test_no_values_no_figure():
    nothing = of_values(np.zeros(0))
    assert distribution(latency("ttft_s"), cumulative_points(np.array([np.nan])), nothing, "requests") is None


def test_marks_carry_their_intervals():
    values = np.linspace(0.1, 0.2, 4000)
    statistics = of_values(values)
    marks = distribution(latency("itl_s"), cumulative_points(values), statistics, "gaps").data[1]
    assert marks.x == pytest.approx([150, 190, 199])
    low, high = statistics["ci"]["p50"]
    assert marks.error_x.array[0] == pytest.approx(1e3 * high - 150)
    assert marks.error_x.arrayminus[0] == pytest.approx(150 - 1e3 * low)


def test_load_adds_replicas_up(two_replicas):
    figure = load_over_time(
        two_replicas.requests, two_replicas.steps, StepBins(two_replicas.steps, 2, EDGES_S), EDGES_S
    )
    running, waiting = traces(figure)["running"], traces(figure)["waiting"]
    assert running.x.tolist() == EDGES_S.tolist()
    assert running.y == pytest.approx([1, 3.6, 1, 1, 1])
    assert waiting.y == pytest.approx([0.5 / 2.5, 0, 0, 1 / 2.5, 1 / 2.5])


def test_kv_occupancy_is_a_mean_of_shares_with_a_range(two_replicas):
    steps = two_replicas.steps
    drawn = traces(kv_occupancy(steps, StepBins(steps, 2, EDGES_S), EDGES_S, 100))
    second_replica = (0.5 * 0.5 + 0.6 * 2) / 2.5
    assert drawn["mean over replicas"].y == pytest.approx([0.038, (0.08 + second_replica) / 2, 0.04, 0.04, 0.04])
    assert drawn["range between replicas"].y[1] == pytest.approx(second_replica)
    assert drawn["lowest"].y[1] == pytest.approx(0.08)
    assert drawn["capacity: 100 blocks a replica"].y == (1, 1)
    assert drawn["preemptions"].x.tolist() == [3.75]
    assert drawn["preemptions"].customdata.tolist() == [2]


def test_one_replica_has_no_range_and_quiet_runs_no_marks(make_result):
    result = make_result([], [{"end_s": 10.0, "used_blocks": 25}])
    drawn = traces(kv_occupancy(result.steps, StepBins(result.steps, 1, EDGES_S), EDGES_S, 100))
    assert set(drawn) == {"in use", "capacity: 100 blocks a replica"}
    assert drawn["in use"].y == pytest.approx([0.25] * 5)


def test_throughput_counts_first_tokens_too(two_replicas):
    result = two_replicas
    bins = StepBins(result.steps, 2, EDGES_S)
    drawn = traces(throughput_over_time(result.requests, result.steps, bins, EDGES_S))
    # Decoded 1.5, 6.5, 2.5 and 2.5 tokens; first tokens at 1 s and 3 s: 15 tokens, 11 + 5 less the last step's.
    assert drawn["output tokens/s"].y * 2.5 == pytest.approx([2.5, 7.5, 2.5, 2.5, 2.5])
    assert drawn["arrived"].y * 2.5 == pytest.approx([2, 1, 0, 1, 1])
    # The rejected request ended too, but did not finish.
    assert drawn["finished"].y * 2.5 == pytest.approx([0, 0, 1, 1, 1])


def test_memory_is_seen_to_fill_during_a_row_of_steps(make_result):
    row = {"end_s": 10.0, "steps": 100, "decoding_requests": 1, "used_blocks": 0, "used_blocks_at_end": 80}
    row |= {"first_step_s": 0.1, "last_step_s": 0.1}
    result = make_result([], [row])
    drawn = traces(kv_occupancy(result.steps, StepBins(result.steps, 1, EDGES_S), EDGES_S, 100))
    assert drawn["in use"].y == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.7])


def test_the_output_rate_falls_as_steps_grow_longer(make_result):
    row = {"end_s": 10.0, "steps": 5000, "decoding_requests": 1, "first_step_s": 1e-3, "last_step_s": 3e-3}
    result = make_result([{"arrival_s": 0.0, "state": "unfinished"}], [row])
    bins = StepBins(result.steps, 1, EDGES_S)
    rates = traces(throughput_over_time(result.requests, result.steps, bins, EDGES_S))["output tokens/s"].y
    assert rates[:4].sum() * 2.5 == pytest.approx(5000)
    assert (np.diff(rates[:4]) < 0).all()


def test_every_length_is_in_the_histogram_once():
    for tokens in ([1], [1, 2, 3, 3], [512] * 9, [1, 10**6], list(range(1, 3000))):
        edges, counts = histogram(np.array(tokens))
        assert counts.sum() == len(tokens)
        assert (np.diff(edges) >= 1).all()


def test_outputs_are_those_of_finished_requests(two_replicas):
    drawn = traces(length_histograms(two_replicas.requests))
    assert drawn["prompt"].y.sum() == 4
    assert drawn["output"].y.sum() == 2


def test_axis_and_labels_have_one_unit():
    values = np.array([0.2, 0.3, 1.5])
    figure = distribution(latency("ttft_s"), cumulative_points(values), of_values(values), "requests")
    assert figure.layout.xaxis.title.text == "TTFT (ms)"
    assert figure.data[-1].text[0] == "P50 300 ms"
    assert figure.data[-1].text[-1].endswith(" ms")
    assert figure.data[0].x.max() == pytest.approx(1500)


def test_objectives_are_lines_as_high_as_the_share_that_must_keep_them():
    values = np.array([0.2, 0.3, 0.4])
    limits_s = {"p50": 0.35, "p99": 2.0}
    figure = distribution(latency("ttft_s"), cumulative_points(values), of_values(values), "requests", limits_s)
    drawn = traces(figure)
    assert drawn["P99 ≤ 2,000 ms"].x == (2000, 2000)
    assert drawn["P99 ≤ 2,000 ms"].y == (0, 0.99)
    assert drawn["P50 ≤ 350 ms"].x == pytest.approx((350, 350))
    assert figure.layout.xaxis.range[1] > 2000


def test_the_load_of_each_replica_is_a_row(two_replicas):
    steps = two_replicas.steps
    (heatmap,) = load_per_replica(steps, StepBins(steps, 2, EDGES_S), EDGES_S).data
    assert list(heatmap.y) == ["replica 0", "replica 1"]
    assert np.array(heatmap.z)[0].tolist() == [1, 1, 1, 1]
    assert np.array(heatmap.z)[1].tolist() == [0, 2.6, 0, 0]


def test_ttft_over_time_is_of_the_requests_that_arrived_then(two_replicas, make_result):
    figure = ttft_over_time(two_replicas.requests, EDGES_S)
    drawn = traces(figure)
    assert list(drawn["P50"].y) == [1.0, None, None, None]
    assert figure.layout.yaxis.title.text == "TTFT (s)"
    assert ttft_over_time(make_result([{"state": "unfinished"}], []).requests, EDGES_S) is None
