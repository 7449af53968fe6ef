"""The assembly that unpacks int4 weights, carried out one instruction at a time."""

import re

import numpy as np
import pytest
import torch
import triton.language as tl

from kernels.int4_unpacking import word_assembly

TYPES = {"f16x2": torch.float16, "bf16x2": torch.bfloat16}


def halves(word: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(np.array([word], dtype=np.uint32).view(np.int16)).view(dtype)


def permuted(low: int, high: int, selector: int) -> int:
    both = (high << 32) | low
    return sum((both >> 8 * ((selector >> 4 * i) & 7) & 0xFF) << 8 * i for i in range(4))


def carried_out(assembly: str, inputs: dict[str, int]) -> dict[str, int]:
    """What the assembly leaves in its registers, by name."""
    registers = dict(inputs)
    for name, operands in re.findall(r"^\s*([a-z][\w.]+) ([^;]+);", assembly, re.MULTILINE):
        low, high, source = (
            re.fullmatch(r"\{(.*), (.*)\}, (.*)", operands).groups() if "{" in operands else ("", "", "")
        )
        if low:
            registers[low], registers[high] = registers[source] & 0xFFFF, registers[source] >> 16
            continue
        target, *sources = operands.split(", ")
        values = [registers[source] if source in registers else int(source, 0) for source in sources]
        operation, _, kind = name.partition(".")
        if operation == "prmt":
            registers[target] = permuted(*values)
        elif operation == "shr":
            registers[target] = values[0] >> values[1]
        elif operation == "lop3":
            assert values[3] == 0xF0 & 0xCC | 0xAA
            registers[target] = values[0] & values[1] | values[2]
        elif operation == "or":
            registers[target] = values[0] | values[1]
        elif operation == "mov":
            registers[target] = values[0]
        else:
            dtype = TYPES[kind.removeprefix("rn.")]
            first, second, *third = (halves(value, dtype).double() for value in values)
            exact = first * second + third[0] if operation == "fma" else first + second
            assert operation in ("fma", "add")
            registers[target] = int(exact.to(dtype).view(torch.int16).numpy().view(np.uint32)[0])
    return registers


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16], ids=str)
def test_each_result_is_its_nibble_less_the_zero(dtype: tl.dtype) -> None:
    generator = np.random.default_rng()
    assembly = word_assembly(dtype)
    kind = TYPES["f16x2" if dtype == tl.float16 else "bf16x2"]
    for zero in range(17):
        for _ in range(8):
            word, scale = int(generator.integers(0, 2**32)), int(generator.integers(0, 2**16))
            found = carried_out(assembly, {"$8": word, "$9": zero << 16 | scale})
            results = [float(halves(found[f"${index}"], kind)[0]) for index in range(8)]
            expected = [(word >> 4 * nibble & 0xF) - zero for nibble in (0, 4, 1, 5, 2, 6, 3, 7)]
            assert results == expected
