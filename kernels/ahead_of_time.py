"""Compile kernels for GPUs that are not there, and read what the compiler says of them.

A kernel file lists what it ships in ``compiled_forms()``; ``compile_form`` compiles one for a compute capability, with
no driver. Not possible in a process whose kernels are interpreted.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernels.launch import LaunchConfig

CAPABILITIES = (80, 90, 100)
SHARED_BYTES = {80: 163 * 1024, 90: 227 * 1024, 100: 227 * 1024}
"""Shared memory that a program may have at most (CUDA C++ Programming Guide, table of technical specifications)."""


@dataclass(frozen=True, slots=True)
class CompiledForm:
    """One form of a kernel as it is shipped.

    ``types`` gives every run-time argument its Triton type (``"*fp16"``, ``"i32"``, ``"fp32"``,
    ``"tensordesc<fp16[128, 64]>"``) in the order of the signature; ``constants`` the constexpr arguments that
    the configuration does not. Pointers, and the integers named in ``divisible``, are taken to be multiples of 16, as
    launches find them. ``configs`` are by capability. ``instructions`` are found in the PTX for each capability named.
    """

    kernel: Any
    form: str
    types: Mapping[str, str]
    constants: Mapping[str, Any]
    configs: Mapping[int, LaunchConfig]
    divisible: tuple[str, ...] = ()
    instructions: Mapping[int, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The kernel's name, and the form."""
        return f"{self.kernel.__name__.strip('_')} {self.form}"


@dataclass(frozen=True, slots=True)
class Resources:
    """What a compiled kernel takes: registers and stack a thread, shared memory a program; and its PTX.

    ``traps`` says that it runs into a trap where it should compute, which the compiler may make of what it cannot do.
    """

    registers: int
    shared_bytes: int
    stack_bytes: int
    ptx: str

    @property
    def traps(self) -> bool:
        """Whether there is a trap in the PTX."""
        return re.search(r"\btrap;", self.ptx) is not None


def compile_form(form: CompiledForm, capability: int) -> Resources:
    """Compile for a compute capability, for example 90. Raises what Triton raises where it cannot."""
    config = form.configs[capability]
    constants = {**form.constants, **config.tiles}
    names = form.kernel.arg_names
    signature = {name: form.types.get(name, "constexpr") for name in names}
    attributes = {
        (names.index(name),): [["tt.divisibility", 16]]
        for name, kind in form.types.items()
        if kind.startswith("*") or name in form.divisible
    }
    source = ASTSource(
        fn=form.kernel,
        signature=signature,
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs=attributes,
    )
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=config.options())
    registers, stack = _resource_usage(compiled.asm["cubin"])
    return Resources(registers, int(compiled.metadata.shared), stack, compiled.asm["ptx"])


def _resource_usage(cubin: bytes) -> tuple[int, int]:
    tool = Path(os.path.dirname(triton.__file__)) / "backends/nvidia/bin/cuobjdump"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        text = subprocess.run([tool, "--dump-resource-usage", path], check=True, capture_output=True, text=True).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", text)
    if found is None:
        raise RuntimeError(f"no resource usage in what cuobjdump says: {text!r}")
    return int(found[1]), int(found[2])
