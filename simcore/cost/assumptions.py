"""The few constants of roofline pricing: how near real kernels come to the datasheet."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RooflineEfficiency:
    """Shares of datasheet peaks that kernels reach, and what a kernel takes however little it does.

    The values are rounded medians of kernels that vLLM 0.19 runs on an H100 SXM, as measured by aiconfigurator
    (github.com/ai-dynamo/aiconfigurator, Apache-2.0): bf16 GEMM of 512 and more tokens (0.78 of peak) and of up to 64
    with large weights (0.83 of bandwidth), prefill attention of 1k to 4k tokens (0.50 of peak, from 0.38 at 1k to 0.62
    at 4k), decode attention of 16 and more requests over 1k and more tokens (0.82 of bandwidth), the smallest GEMMs
    (2.5 us), all-reduce over 8 devices (0.50 of the links, 4.6 us at the least). They are taken for every accelerator,
    so expect errors of tens of percent elsewhere: calibrated kernels replace them.
    """

    matmul_compute: float = 0.78
    matmul_memory: float = 0.83
    attention_compute: float = 0.50
    attention_memory: float = 0.82
    kernel_floor_s: float = 2.5e-6
    interconnect: float = 0.50
    collective_floor_s: float = 4.6e-6


@dataclass(frozen=True, slots=True)
class HostOverhead:
    """What the host adds to each step while the accelerator waits: scheduling, input preparation, sampling, output.

    Not overlapped with kernels. The values are assumed, not fitted; a run reports the share of time they make up.
    """

    step_s: float = 0.5e-3
    per_request_s: float = 5e-6
