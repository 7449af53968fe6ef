"""Every shipped form compiles for the chips that have it, without a stack, and with the instructions it should use."""

from importlib import import_module

import pytest

import kernels
from kernels.ahead_of_time import CompiledForm, compile_form

FORMS = [
    pytest.param(form, capability, id=f"{form.name} sm_{capability}")
    for module in sorted(set(kernels.OPERATIONS.values()))
    for form in import_module(module).compiled_forms()
    for capability in form.configs
]


@pytest.mark.parametrize(("form", "capability"), FORMS)
def test_compiles_without_stack(form: CompiledForm, capability: int) -> None:
    resources = compile_form(form, capability)
    assert resources.stack_bytes == 0
    assert form.instructions.get(capability, "") in resources.ptx
