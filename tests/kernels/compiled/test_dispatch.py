"""Operations by name, on a CPU: the reference answers, and what no kernel has is refused as on a GPU."""

from importlib import import_module

import pytest
import torch

import kernels
from kernels.errors import UnknownOperationError, UnsupportedFormError
from kernels.gemm import gemm_reference
from kernels.moe_reference import ExpertWeights


@pytest.mark.parametrize("name", kernels.OPERATIONS)
def test_every_operation_is_found_by_its_name_again_and_again(name: str) -> None:
    for _ in range(2):
        operation = getattr(kernels, name)
        assert operation is kernels.OPERATIONS[name]
        assert operation.__name__ == name
    # Its module is there too, though hidden behind an operation of the same name.
    assert getattr(import_module(operation.__module__), name) is operation


def test_the_reference_answers_on_a_cpu() -> None:
    a, weight = torch.randn(3, 16).half(), torch.randn(8, 16).half()
    assert torch.equal(kernels.gemm(a, weight), gemm_reference(a, weight))
    assert torch.equal(kernels.gemm(a=a, weight=weight, config=None), gemm_reference(a, weight))


def test_an_unknown_operation_names_the_nearest() -> None:
    with pytest.raises(UnknownOperationError, match="no kernel is called 'paged_decod'; did you mean paged_decode"):
        kernels.paged_decod  # noqa: B018
    with pytest.raises(UnknownOperationError, match="no kernel is called 'zzz'; there are add_rms_norm, copy_blocks"):
        kernels.zzz  # noqa: B018
    assert not hasattr(kernels, "flash_attention_3")


def test_forms_that_there_are_not_are_refused_on_a_cpu_too() -> None:
    q, cache = torch.randn(2, 4, 80).half(), torch.randn(3, 2, 16, 80).half()
    tables, lengths = torch.zeros(2, 1, dtype=torch.int32), torch.ones(2, dtype=torch.int32)
    with pytest.raises(UnsupportedFormError, match="paged_decode has no form with head dimension 80; it has 64, 96"):
        kernels.paged_decode(q, cache, cache, tables, lengths, 1.0, max_context_tokens=1)
    with pytest.raises(UnsupportedFormError, match=r"gemm has no form with dtype torch\.float64"):
        kernels.gemm(torch.zeros(1, 16).double(), torch.zeros(8, 16).double())
    experts = ExpertWeights(torch.zeros(2, 64, 32), torch.zeros(2, 32, 32), activation="clamped_swiglu")
    ids, weights = torch.zeros(1, 1, dtype=torch.int32), torch.ones(1, 1)
    with pytest.raises(UnsupportedFormError, match=r"it has silu, clamped-swiglu \(did you mean clamped-swiglu\?\)"):
        kernels.moe(torch.zeros(1, 32), experts, weights, ids)


@pytest.mark.parametrize("name", ["seeds", "temperatures"])
def test_tensors_that_a_kernel_would_misread_are_refused(name: str) -> None:
    number, integer = torch.ones(4), torch.ones(4, dtype=torch.int64)
    arguments = {"temperatures": number, "top_ks": integer, "top_ps": number}
    arguments |= {"seeds": integer, "requests": integer, "positions": integer}
    wide = torch.randn(2, 4, 9)
    kernels.sample(wide[0][:, :5], **arguments)  # rows may be apart
    with pytest.raises(UnsupportedFormError, match="strides of logits"):
        kernels.sample(wide[0].T[:4], **arguments)
    arguments[name] = torch.ones(4, 2, dtype=arguments[name].dtype)[:, 0]
    message = rf"sample has no form with strides of {name} \(2,\); it has contiguous tensors"
    with pytest.raises(UnsupportedFormError, match=message):
        kernels.sample(wide[0][:, :5], **arguments)
