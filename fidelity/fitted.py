"""Which constants were fitted on measured rows, and what was chosen while looking at errors."""

BEFORE: dict[str, str] = {
    "step_s": "1.0e-4 (vLLM), 1.4e-3 (vLLM that does not schedule ahead)",
    "per_request_s": "4.3e-5 (vLLM that does not schedule ahead)",
    "launch_s": "4.0e-5, times 0.75 on B200",
    "request_s": "5.0e-3 (vLLM), 8.0e-3 (SGLang, TensorRT-LLM)",
    "per_prompt_token_s": "4.0e-6 (SGLang, TensorRT-LLM)",
    "linear_prompt_s": "3.4e-3",
}
"""What host constants were when engines had their own, each on few rows of its own, before groups were left out."""

FITTED = (
    "What a kernel of an eager step, a request in a step, a token of a prompt and a request take of the host "
    "(`launch_s`, `per_request_s`, `per_prompt_token_s`, `request_s`): one value each for vLLM, SGLang and "
    "TensorRT-LLM, on the InferenceX rows of all.",
    "What a step and an eager layer take of vLLM's host (`step_s`, `layer_s`): its InferenceX rows.",
    "The wait of linear attention for the host under SGLang (`linear_prompt_s`): Qwen3.5-397B-A17B.",
    "Launches of latent attention where layers are not compiled: DeepSeek-V3 on H200 and B200.",
    "What vLLM's host takes where it does not schedule ahead, as before 0.14: TPOT of vLLM 0.12 on Qwen3-32B on eight "
    "H100 at 8 and 128 clients (2 other rows).",
)
"""Each with the rows that it was fitted on."""
CHOSEN = (
    "Tokens are routed with a mild skew.",
    "Measured GEMMs quantise their input first, which is taken off them and counted where an engine does so apart.",
    "What each engine fuses, and that shared experts run beside routed ones.",
    "Five small kernels beside latent attention.",
    "The number of kernels that an operator launches.",
    "Steps without a CUDA graph are bound by launches.",
    "GEMMs are held to the rate of a loaded device.",
    "Engines schedule a step ahead, which hides what they prepare for each request.",
    "Compiled layers launch without the modules around them.",
    "Qwen3.5 runs with the projections and the gates of shared experts that its checkpoint has.",
    "An MoE model whose experts were not measured takes the mean of its nearest.",
    "Prompts wait for each other where TensorRT-LLM's scripts say so, for as many steps as these or its defaults say.",
    "The residual of norms, the embedding and the choice of tokens count.",
    "Accelerators joined by PCIe alone reach each other through the host, where a run's configuration describes a link "
    "of that rate. This was seen on the run of two RTX PRO 6000. Such transfers are fitted to collectives of other "
    "GPUs.",
)
"""What was decided about the structure of the simulator while errors of rows were in view."""
