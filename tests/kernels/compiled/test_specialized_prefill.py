import re

from kernels.ahead_of_time import CompiledForm, compile_form
from kernels.flash_prefill_kernel import flash_prefill_kernel
from kernels.launch import LaunchConfig
from kernels.prefill_inputs import STRIDES, argument_types

EVENTS = {
    "wait": r"mbarrier\.try_wait",
    "load": r"mbarrier\.arrive\.expect_tx",
    "free": r"mbarrier\.arrive\.shared",
    "multiply": r"wgmma\.mma_async",
    "done": r"wgmma\.wait_group",
}


def test_blocks_are_freed_after_they_are_read() -> None:
    """Compilers have freed a block between waiting for it and multiplying by it, where it was reshaped."""
    tiles = {"block_d": 128, "block_m": 128, "block_n": 128, "descriptors": False, "specialized": True}
    config = LaunchConfig(tiles, num_warps=4, num_stages=2)
    types, constants = argument_types("bf16", config, sinks=False, cache=None)
    constants |= {"heads": 32, "kv_heads": 8, "head_dim": 128, "block_size": 1, "window": 0, "soft_cap": 0.0}
    form = CompiledForm(flash_prefill_kernel, "specialized", types, constants, {90: config}, STRIDES)
    resources = compile_form(form, 90)
    assert resources.stack_bytes == 0
    found = re.finditer("|".join(f"(?P<{name}>{pattern})" for name, pattern in EVENTS.items()), resources.ptx)
    events = " ".join(str(event.lastgroup) for event in found)
    assert "wait free" not in events
    assert len(re.findall("wait (multiply )+done free", events)) == 4  # keys and values, in two groups of warps
