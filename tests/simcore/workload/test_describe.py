import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from simcore.workload.arrivals import Poisson
from simcore.workload.describe import describe, describe_trace, spearman
from simcore.workload.lengths import Uniform
from simcore.workload.pairs import IndependentPairs
from simcore.workload.synthetic import SyntheticOpenLoop
from simcore.workload.traces import Trace


def trace_of(arrival_s, prompts, outputs) -> Trace:
    return Trace("csv", np.rint(np.array(arrival_s) * 1e9).astype(np.int64), np.array(prompts), np.array(outputs), 0, 0)


def test_a_small_trace_by_hand():
    description = describe_trace("t.csv", trace_of([0, 0.5, 1.5, 4.0], [1, 2, 3, 10], [8, 6, 4, 2]))
    assert (description.requests, description.duration_s, description.mean_rate_per_s) == (4, 4.0, 0.75)
    assert (description.prompt_tokens.mean, description.prompt_tokens.percentiles["p50"]) == (4.0, 2.5)
    assert description.inter_arrival_cv == pytest.approx(np.std([0.5, 1.0, 2.5]) / np.mean([0.5, 1.0, 2.5]))
    per_second = description.burstiness[0]  # counts 2, 1, 0, 0 in whole seconds
    assert per_second.index_of_dispersion == pytest.approx(0.6875 / 0.75)
    assert per_second.peak_to_mean_rate == pytest.approx(2 / 0.75)
    assert description.burstiness[1].index_of_dispersion is None
    assert description.rank_correlation == pytest.approx(-1.0)


def test_one_request_has_no_gaps():
    description = describe_trace("t.csv", trace_of([0], [5], [6]))
    assert description.duration_s is None
    assert description.mean_rate_per_s is None
    assert description.inter_arrival_s is None
    assert description.inter_arrival_cv is None
    assert description.rank_correlation is None


def test_simultaneous_requests_have_no_rate():
    description = describe_trace("t.csv", trace_of([0, 0], [5, 6], [6, 7]))
    assert description.mean_rate_per_s is None
    assert description.inter_arrival_cv is None


def test_poisson_looks_like_poisson():
    pairs = IndependentPairs(Uniform(1, 100), Uniform(1, 100))
    (batch,) = SyntheticOpenLoop(Poisson(20.0), pairs, seed=1, requests=60_000).batches()
    description = describe_trace("t", Trace("csv", batch.arrival_ns, batch.prompt_tokens, batch.output_tokens, 0, 0))
    assert description.inter_arrival_cv == pytest.approx(1.0, abs=0.02)
    assert description.rank_correlation == pytest.approx(0.0, abs=0.02)
    assert description.burstiness[0].index_of_dispersion == pytest.approx(1.0, abs=0.1)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=3))
def test_rank_correlation_with_ties(pairs):
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    ours = spearman(first, second)
    if ours is None:
        assert len(set(first)) == 1 or len(set(second)) == 1
    else:
        assert ours == pytest.approx(spearmanr(first, second).statistic)


def test_failed_and_unordered_rows_are_counted(tmp_path):
    (tmp_path / "t.csv").write_text("arrival_s,prompt_tokens,output_tokens\n1,1,1\n0,2,2\n2,3,0\n")
    description = describe(tmp_path / "t.csv")
    assert (description.requests, description.failed, description.out_of_order) == (2, 1, 1)


def test_the_azure_conversation_trace(shared_data):
    description = describe(shared_data / "traces" / "azure2023" / "AzureLLMInferenceTrace_conv.csv")
    assert description.prompt_tokens.percentiles["p50"] == 1020
    assert description.output_tokens.percentiles["p99"] == 601
    assert description.mean_rate_per_s == pytest.approx(19365 / 3501.721937)
    assert description.inter_arrival_cv == pytest.approx(1.094, abs=0.001)
    assert description.rank_correlation == pytest.approx(0.0728, abs=0.0001)
