"""What calibrated prices cost: ``python -m benchmarks.kernel_prices [PROFILE]``, microseconds per call.

A step of decodes here is what a step price needs when shapes are compiled once: the GEMMs, experts and
collectives of a token count looked up in a dictionary, and one attention curve at a total context.
"""

import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np

from simcore.cost.calibrated import KernelProfile, load_profile

CALLS = 20_000


def main(accelerator: str = "h200-sxm", name: str = "vllm-0.19.0") -> None:
    """Print the table."""
    started = perf_counter()
    profile = load_profile(accelerator, name)
    print(f"load {accelerator}/{name}: {perf_counter() - started:.2f} s")
    started = perf_counter()
    decode, mixed, array = _steps(profile)
    print(f"compile one model's shapes: {1e3 * (perf_counter() - started):.1f} ms")
    for title, call in (("decode step", decode), ("mixed step, two chunks over prefixes", mixed)):
        print(f"{title}: {_microseconds(call):.2f} us")
    contexts = np.arange(1000.0) * 64 + 64_000
    print(f"1,000 decode steps as one array: {1e6 * _once(array, contexts) / 1000:.3f} us per step")


def _steps(profile: KernelProfile) -> tuple[Callable[[int], float], Callable[[int], float], Callable]:
    """Prices of steps of an 8B model in bf16: four GEMMs, attention of 32 heads over 8."""
    gemms = [profile.gemm("bf16", n, k) for n, k in ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336))]
    generation = profile.generation_attention("bf16", 32, 8, 128)
    context = profile.context_attention("bf16", 32, 8, 128)
    assert generation is not None
    assert context is not None
    linear: dict[int, float] = {}

    def linear_s(tokens: int) -> float:
        price = linear.get(tokens)
        if price is None:
            price = linear[tokens] = sum(gemm.seconds(tokens) for gemm in gemms if gemm is not None)
        return price

    def decode_s(call: int) -> float:
        batch = 32 + call % 64
        return linear_s(batch) + generation.seconds(batch, batch * 1000 + call)

    def mixed_s(call: int) -> float:
        batch = 32 + call % 64
        chunks = [(256 + call % 200, 512), (400, 1024 + call % 100)]
        linear_part = linear_s(batch + chunks[0][0] + chunks[1][0])
        return linear_part + context.step_s(chunks) + generation.seconds(batch, batch * 1000 + call)

    curve = generation.over_total_context(64).curve
    return decode_s, mixed_s, curve.at_many


def _microseconds(call: Callable[[int], float]) -> float:
    started = perf_counter()
    for index in range(CALLS):
        call(index)
    return 1e6 * (perf_counter() - started) / CALLS


def _once(call: Callable, argument: np.ndarray) -> float:
    best = np.inf
    for _ in range(20):
        started = perf_counter()
        call(argument)
        best = min(best, perf_counter() - started)
    return float(best)


if __name__ == "__main__":
    main(*sys.argv[1:])
