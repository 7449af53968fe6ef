"""Constants that are assumed: how near kernels come to the datasheet, what the host takes, how far off that may be."""

from dataclasses import dataclass

ROUTING = "power_law_1.01"
"""How tokens spread over experts, as the tables of measured experts name it: drawn with a mild skew. Their "balanced"
deals tokens out in turn, so that a batch of decodes reads many more experts than drawing at random would let it."""
ROUTINGS = ("balanced", "power_law_1.01", "power_law_1.2")
"""What routing may be in truth, each as likely: bands draw from those that were measured."""


@dataclass(frozen=True, slots=True)
class RooflineEfficiency:
    """Shares of datasheet peaks that kernels reach, and what a kernel takes however little it does.

    The values are rounded medians of kernels that vLLM 0.19 runs on an H100 SXM, as measured by aiconfigurator
    (github.com/ai-dynamo/aiconfigurator, Apache-2.0): bf16 GEMM of 512 and more tokens (0.78 of peak) and of up to 64
    with large weights (0.83 of bandwidth), prefill attention of 1k to 4k tokens (0.50 of peak, from 0.38 at 1k to 0.62
    at 4k), decode attention of 16 and more requests over 1k and more tokens (0.82 of bandwidth), the smallest GEMMs
    (2.5 us), all-reduce over 8 devices (0.50 of the links, 4.6 us at the least). Weights that are widened to 16 bits on
    the way reach less of the bandwidth: int4 in TensorRT-LLM 1.3 reaches 0.61 on an H100 SXM and 0.45 on an H200 (rates
    of their kernel profiles). All are taken for every accelerator, so expect errors of tens of percent elsewhere:
    calibrated kernels replace them.
    """

    matmul_compute: float = 0.78
    matmul_memory: float = 0.83
    widened_memory: float = 0.50
    attention_compute: float = 0.50
    attention_memory: float = 0.82
    kernel_floor_s: float = 2.5e-6
    interconnect: float = 0.50
    collective_floor_s: float = 4.6e-6


@dataclass(frozen=True, slots=True)
class HostOverhead:
    """What the host takes, in seconds, apart from kernels; engine presets state their own values with their source.

    The accelerator waits ``step_s`` and ``per_request_s`` in every step: scheduling, input preparation, sampling and
    output, as far as the engine does not do them while kernels run. Steps that are no CUDA graph, called eager, take at
    least ``launch_s`` for each kernel, with what calls it, and ``layer_s`` for each layer. Steps of decodes alone are
    graphs up to ``max_cudagraph_tokens``, others too if ``mixed_graphs``; a ``compiled`` engine launches what it
    compiled, without the modules around it. A request comes to the queue ``request_s`` after its arrival, and its
    prompt is tokenised before, one prompt at a time, in ``per_prompt_token_s`` each token. What an answer takes back to
    its client is counted there too: latencies show no more than the sum. With ``async_scheduling`` the engine schedules
    a step while the one before runs: a request that comes meanwhile waits for one step more. Linear attention of
    prompts is not launched ahead of the accelerator, which waits ``linear_prompt_s`` in each such layer.
    """

    step_s: float = 0.5e-3
    per_request_s: float = 5e-6
    launch_s: float = 0.0
    layer_s: float = 0.0
    max_cudagraph_tokens: int = 512
    mixed_graphs: bool = False
    request_s: float = 0.0
    per_prompt_token_s: float = 0.0
    async_scheduling: bool = False
    compiled: bool = False
    linear_prompt_s: float = 0.0


HOST_RANGES = {
    "step_s": (0.0, 4e-3, "nothing where it is hidden; 4 ms of waiting in vLLM 0.5 (vllm-project/vllm issue 6854)"),
    "per_request_s": (0.0, 1e-4, "0.1 ms in vLLM 0.5 (vllm-project/vllm issue 6913)"),
    "launch_s": (
        3e-6,
        4e-5,
        "3 us by CUDA's driver alone, 10 us by PyTorch's dispatcher, 40 us by a module in Python or Triton's",
    ),
    "layer_s": (0.0, 1e-3, "what Python does between two compiled pieces: guards, views, attention's metadata"),
    "request_s": (
        1e-3,
        5e-2,
        "HTTP, validation, two queues between processes and the first answer; 50 ms in vLLM 0.11",
    ),
    "per_prompt_token_s": (5e-7, 2e-5, "tokenisers in Rust reach 2 million tokens/s, those in Python 50 thousand"),
    "linear_prompt_s": (0.0, 5e-3, "as long as a layer's kernels wait for lengths that are read back from the device"),
}
"""What a constant of the host of a GPU server may physically be, in seconds, and why. One that a fit puts outside
stands for something else."""

ROOFLINE_MATMUL_ERRORS = (-0.39, -0.28, -0.14, -0.12, 0.01, 0.10, 0.17)
ROOFLINE_ATTENTION_ERRORS = (-1.50, -0.70, -0.20, -0.02, 0.08, 0.20, 0.21)
ROOFLINE_COLLECTIVE_ERRORS = (-2.10, -1.11, -0.15, 0.14, 0.25, 0.38, 0.48)
"""How far roofline prices are off: quantiles of log(price / measurement) at the levels of
``simcore.cost.calibrated.errors.LEVELS``, over kernels of dense models on the seven accelerators that have a profile,
as ``tools/roofline_spread.py`` prints them; the values of ``RooflineEfficiency`` are from one of the seven."""
HOST_SPREAD = 2.0
"""One true host constant in ten is taken to be more than so many times the assumed one, and one in ten less than the
inverse. Assumed: the constants fitted for three engines (``simcore/engines/``) differ by 2.7 times in what a launch
takes and by 2 in what a request takes, and those of one engine on another host may differ as much."""
STEP_ERROR = 0.06
"""Standard deviation of the logarithm of what all steps together are off by, beside errors of their parts: kernels in a
running engine differ from the same ones measured alone. It is the root mean square of the errors of mean TPOT on the
measured runs that host constants were fitted on (docs/results/fidelity.md): a least value, since it is of these."""
