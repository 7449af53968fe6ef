"""The few constants of roofline pricing: how near real kernels come to the datasheet."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RooflineEfficiency:
    """Shares of datasheet peaks that kernels reach, and what a kernel takes however little it does.

    The values are rounded medians of kernels that vLLM 0.19 runs on an H100 SXM, as measured by aiconfigurator
    (github.com/ai-dynamo/aiconfigurator, Apache-2.0): bf16 GEMM with 512 and more tokens (0.75 of peak) and with up to
    64 (0.80 of bandwidth), prefill attention of 1k to 4k tokens (0.53 of peak), decode attention (0.85 of bandwidth),
    the smallest GEMM (2.6 us), all-reduce over 8 devices (0.5 of the links, 4.6 us at the least). They are taken for
    every accelerator, so expect errors of tens of percent elsewhere: calibrated kernels replace them.
    """

    matmul_compute: float = 0.75
    matmul_memory: float = 0.80
    attention_compute: float = 0.53
    attention_memory: float = 0.85
    kernel_floor_s: float = 2.6e-6
    interconnect: float = 0.50
    collective_floor_s: float = 4.6e-6


@dataclass(frozen=True, slots=True)
class HostOverhead:
    """What the host adds to each step while the accelerator waits: scheduling, input preparation, sampling, output.

    Not overlapped with kernels. The values are assumed, not fitted; a run reports the share of time they make up.
    """

    step_s: float = 0.5e-3
    per_request_s: float = 5e-6
