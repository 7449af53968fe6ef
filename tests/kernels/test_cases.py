"""Every kernel equals its torch reference at the toy cases that it is timed by."""

from dataclasses import fields, is_dataclass

import pytest
import torch

from benchmarks.kernels import MODULES, cases_of
from kernels.case import Case
from kernels.launch import by_reference
from tests.kernels.closeness import assert_close

CASES = [pytest.param(case, id=str(case)) for module in MODULES for case in cases_of(module, toy=True)]


def tensors(result: object) -> list[torch.Tensor]:
    """All that a call returned."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, tuple | list):
        return [tensor for each in result for tensor in tensors(each)]
    if is_dataclass(result):
        return [tensor for field in fields(result) for tensor in tensors(getattr(result, field.name))]
    return []


def results(case: Case, device: torch.device) -> list[torch.Tensor]:
    """What it computes from the same random inputs at every call."""
    torch.manual_seed(0)
    return tensors(case.prepare(device)())


@pytest.mark.parametrize("case", CASES)
def test_a_kernel_equals_its_reference(case: Case, device: torch.device) -> None:
    computed = results(case, device)
    with by_reference():
        expected = results(case, device)
    assert computed
    for out, reference in zip(computed, expected, strict=True):
        if out.is_floating_point():
            assert_close(out, reference)
        else:
            assert torch.equal(out, reference)
