import runpy
from pathlib import Path

import numpy as np
import pytest

from simcore.workload.describe import describe_trace
from simcore.workload.traces import read_trace

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
BUNDLED = SCENARIOS / "bundled-workload.csv"


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCENARIOS / "make_bundled_workload.py"))


def test_the_file_is_what_the_script_makes(script):
    assert BUNDLED.read_bytes() == script["csv_text"]().encode()


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--help"], 0), (["--nonsense"], 2), (["no-such-trace.csv"], 2), (["a", "b"], 2)]
)
def test_help_and_wrong_usage_write_nothing(script, arguments, code):
    before = BUNDLED.stat().st_mtime_ns
    with pytest.raises(SystemExit) as ended:
        script["main"](arguments)
    assert ended.value.code == code
    assert BUNDLED.stat().st_mtime_ns == before


def test_it_is_about_ten_minutes_of_chat():
    trace = read_trace(BUNDLED)
    description = describe_trace(BUNDLED, trace)
    assert len(trace) == 5000
    assert description.duration_s == pytest.approx(5000 / 8.5, rel=0.05)
    assert description.inter_arrival_cv == pytest.approx(1.094, rel=0.05)


@pytest.mark.parametrize("what", ["prompt_tokens", "output_tokens"])
def test_its_lengths_are_those_of_the_azure_trace(shared_data, what):
    azure = read_trace(shared_data / "traces" / "azure2023" / "AzureLLMInferenceTrace_conv.csv")
    bundled = read_trace(BUNDLED)
    percentiles = (10, 25, 50, 75, 90, 95, 99)
    theirs, ours = (np.percentile(getattr(trace, what), percentiles) for trace in (azure, bundled))
    assert ours == pytest.approx(theirs, rel=0.1)


def test_the_agreement_is_printed(script, shared_data):
    table = script["agreement"](BUNDLED, shared_data / "traces" / "azure2023" / "AzureLLMInferenceTrace_conv.csv")
    assert "prompt_tokens P99" in table
    assert "inter-arrival CV" in table
