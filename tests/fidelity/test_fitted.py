import numpy as np
import pytest

from fidelity.case import Case, Outcome
from fidelity.fitted import fitted_note, is_fitted, predicted_residuals, residual

LABELS = {
    "harness": "known",
    "engine": "vllm-v1",
    "model": "llama-3.1-70b",
    "accelerator": "h200-sxm",
    "concurrency": "4",
    "lengths": "1024/1024",
}


def outcome(error, **labels):
    figures = {"ttft_s.mean": 2.0, "tpot_s.mean": 2.0}
    return Outcome(Case("one", LABELS | labels, {}, figures), dict.fromkeys(figures, 2.0 * (1 + error)), {})


@pytest.mark.parametrize(
    "label",
    [
        {"harness": "unknown"},
        {"engine": "sglang"},
        {"model": "gpt-oss-120b"},
        {"accelerator": "b200"},
        {"concurrency": "8"},
        {"lengths": "1024/8192"},
    ],
)
def test_a_row_that_differs_in_anything_is_a_prediction(label):
    assert is_fitted(outcome(0.1))
    assert not is_fitted(outcome(0.1, **label))


def test_the_residual_is_over_the_fitted_rows():
    outcomes = [outcome(0.1), outcome(-0.1), outcome(5.0, concurrency="8")]
    expected = np.sqrt((np.log(1.1) ** 2 + np.log(0.9) ** 2) / 2)
    assert residual(outcomes, "tpot_s.mean") == pytest.approx(expected)
    assert "On the 2 rows" in fitted_note(outcomes)
    assert f"{expected:.3f} for TPOT" in fitted_note(outcomes)


def test_without_fitted_rows_nothing_is_said():
    assert residual([outcome(0.1, concurrency="8")], "tpot_s.mean") is None
    assert fitted_note([outcome(0.1, concurrency="8")]) == ""


def test_what_setups_that_nothing_was_fitted_on_are_off_by_is_told_one_by_one():
    other = {"engine": "sglang", "model": "deepseek-v3", "accelerator": "b200"}
    outcomes = [outcome(0.1), outcome(0.2, **other), outcome(-0.2, **other), outcome(0.05, concurrency="8")]
    outcomes.append(outcome(9.0, harness="unknown"))
    both = np.sqrt((np.log(1.2) ** 2 + np.log(0.8) ** 2) / 2)
    assert predicted_residuals(outcomes, "ttft_s.mean") == pytest.approx([np.log(1.05), both])
    assert f"{np.log(1.05):.3f} to {both:.3f}" in fitted_note(outcomes)
