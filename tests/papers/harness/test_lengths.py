"""Lengths that several papers use."""

import numpy as np
import pytest

from papers.harness.lengths import KINDS, laws, quantiles
from papers.harness.simulating import poisson, run
from papers.harness.traces import public_trace
from simcore.core.errors import FileError

NAMES = ("sharegpt", "sharegpt-short", "lmsys", "alpaca", "azure-conv", "azure-code")


@pytest.mark.parametrize("name", NAMES)
def test_quantiles_rise(name):
    for kind in KINDS:
        shares, tokens = quantiles(name, kind)
        assert shares[0] == 0
        assert shares[-1] == 1
        assert sorted(shares) == shares
        assert sorted(tokens) == tokens


def test_requests_have_these_lengths():
    document = {
        "model": "smollm2-135m",
        "cluster": {"accelerator": "h100-sxm"},
        "workload": {**poisson(1000, 50.0), **laws("lmsys")},
    }
    requests = run(document, 0).requests
    shares, tokens = quantiles("lmsys", "output_tokens")
    assert np.median(requests["output_tokens"]) == pytest.approx(tokens[shares.index(0.5)], rel=0.2)


def test_a_trace_that_is_missing_is_told_with_the_command_that_fetches_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SERVETWIN_DATA", raising=False)
    with pytest.raises(FileError, match="servetwin trace fetch mooncake-conversation"):
        public_trace("mooncake-conversation", "mooncake/conversation_trace.jsonl")
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "mooncake-conversation.jsonl").write_text("")
    assert (
        public_trace("mooncake-conversation", "mooncake/conversation_trace.jsonl").name == "mooncake-conversation.jsonl"
    )
