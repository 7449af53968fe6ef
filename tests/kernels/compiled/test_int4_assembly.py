"""The assembly that unpacks int4 weights, carried out one instruction at a time."""

import re

import numpy as np
import pytest
import torch
import triton.language as tl

from kernels.w4a16 import _plane_assembly

TYPES = {"f16x2": torch.float16, "bf16x2": torch.bfloat16}


def halves(word: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(np.array([word], dtype=np.uint32).view(np.int16)).view(dtype)


def permuted(low: int, high: int, selector: int) -> int:
    both = (high << 32) | low
    return sum((both >> 8 * ((selector >> 4 * i) & 7) & 0xFF) << 8 * i for i in range(4))


def carried_out(assembly: str, inputs: dict[str, int]) -> int:
    """What the assembly leaves in $0."""
    registers = dict(inputs)
    for name, operands in re.findall(r"^\s*([a-z][\w.]+) ([^;]+);", assembly, re.MULTILINE):
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
    return registers["$0"]


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16], ids=str)
@pytest.mark.parametrize("plane", range(8))
def test_each_plane_is_its_nibbles_less_their_zeros(plane: int, dtype: tl.dtype) -> None:
    generator = np.random.default_rng()
    assembly = _plane_assembly(plane, dtype)
    for nibble in range(16):
        words = [int(word) for word in generator.integers(0, 2**32, 2)]
        words[0] = words[0] & ~(0xF << 4 * plane) | nibble << 4 * plane
        zeros = [int(zero) for zero in generator.integers(0, 17, 2)]
        both = [zero << 16 | int(scale) for zero, scale in zip(zeros, generator.integers(0, 2**16, 2), strict=True)]
        found = carried_out(assembly, {"$1": words[0], "$2": words[1], "$3": both[0], "$4": both[1]})
        expected = [(word >> 4 * plane & 0xF) - zero for word, zero in zip(words, zeros, strict=True)]
        assert halves(found, TYPES["f16x2" if dtype == tl.float16 else "bf16x2"]).tolist() == expected
