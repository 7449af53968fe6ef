"""The benchmark has cases for every target, and what they are held against."""

import pytest

from benchmarks.kernels import MODULES, cases_of
from benchmarks.kernels.acceptance import TARGETS, Target, belongs

CASES = [case for module in MODULES for case in cases_of(module)]
PLACES = {(case.kernel, case.form, case.dtype, tuple(sorted(case.shape.items()))) for case in CASES}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.title)
def test_each_target_has_cases_and_what_to_hold_them_against(target: Target) -> None:
    chosen = [case for case in CASES if belongs(target, case)]
    assert {case.form for case in chosen} == set(target.forms)
    if not isinstance(target.against, str):
        assert any((*target.against, tuple(sorted(case.shape.items()))) in PLACES for case in chosen)
