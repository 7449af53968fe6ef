"""What every shipped form takes on every chip that has it: ``python -m benchmarks.kernels.compile_table``, no GPU.

Writes ``results/compiled-forms.csv``, several minutes of compiling; docs/results/kernels.md is made from it, and a test
compiles the forms again and compares.
"""

import csv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import kernels
from kernels.ahead_of_time import CompiledForm, compile_form

TABLE = Path(__file__).resolve().parent / "results" / "compiled-forms.csv"
COLUMNS = ("kernel", "form", "capability", "registers", "shared_bytes", "stack_bytes")


def shipped_forms() -> Iterator[tuple[CompiledForm, int]]:
    """Each form and compute capability, of all kernels."""
    for module in sorted({operation.__module__ for operation in kernels.OPERATIONS.values()}):
        for form in import_module(module).compiled_forms():
            for capability in form.configs:
                yield form, capability


def row(form: CompiledForm, capability: int) -> tuple[str, str, int, int, int, int]:
    """One line of the table."""
    found = compile_form(form, capability)
    name = form.kernel.__name__.strip("_")
    return name, form.form, capability, found.registers, found.shared_bytes, found.stack_bytes


def main() -> None:
    """Compile all and write."""
    with ThreadPoolExecutor(2) as pool:
        rows = sorted(set(pool.map(lambda each: row(*each), shipped_forms())))
    with TABLE.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
