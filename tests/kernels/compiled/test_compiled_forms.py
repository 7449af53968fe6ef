"""Every shipped form compiles for the chips that have it, as the committed table says, and without a stack.

One form of each kernel and chip is compiled by ``make test``, all others by ``make test-long``.
"""

import csv

import pytest

from benchmarks.kernels.compile_table import COLUMNS, TABLE, shipped_forms
from kernels.ahead_of_time import SHARED_BYTES, CompiledForm, compile_form

SHIPPED = list(shipped_forms())
FIRST = {(form.kernel.__name__, capability): form for form, capability in reversed(SHIPPED)}
FORMS = [
    pytest.param(
        form,
        capability,
        id=f"{form.name} sm_{capability}",
        marks=() if FIRST[form.kernel.__name__, capability] is form else pytest.mark.long,
    )
    for form, capability in SHIPPED
]
with TABLE.open(newline="", encoding="utf-8") as stream:
    ROWS = {
        (f"{line['kernel']} {line['form']}", int(line["capability"])): tuple(int(line[name]) for name in COLUMNS[3:])
        for line in csv.DictReader(stream)
    }


@pytest.mark.parametrize(("form", "capability"), FORMS)
def test_compiles_without_stack(form: CompiledForm, capability: int) -> None:
    resources = compile_form(form, capability)
    assert resources.stack_bytes == 0
    assert resources.shared_bytes <= SHARED_BYTES[capability]
    assert not resources.traps
    assert form.instructions.get(capability, "") in resources.ptx
    told = ROWS[form.name, capability]
    assert (resources.registers, resources.shared_bytes, resources.stack_bytes) == told, "make the table again"


def test_the_table_has_no_other_forms() -> None:
    assert set(ROWS) == {(form.name, capability) for form, capability in SHIPPED}
