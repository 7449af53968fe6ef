"""Writes docs/reference/parallelism.md: ``tools/regenerate.py`` calls it."""

from pathlib import Path

from simcore.build.explanation import explain_step
from simcore.build.simulation import Simulation
from simcore.cost.breakdown import StepShape
from simcore.cost.calibrated import load_profile
from simcore.cost.collectives import NETWORK, NVLINK, PCIE, PCIE_HOST, alpha_beta_constants, link_share
from simcore.hardware import load_accelerator

_LINKS = {
    NVLINK: "NVLink through switches",
    PCIE: "PCIe, device to device",
    PCIE_HOST: "PCIe, through the host",
    NETWORK: "network between nodes",
}
_SPLITS = (
    ("llama-3.1-70b", {"tensor_parallel": 8}),
    ("llama-3.1-70b", {"tensor_parallel": 4, "pipeline_parallel": 2}),
    ("llama-3.1-70b", {"tensor_parallel": 2, "pipeline_parallel": 4}),
    ("llama-3.1-70b", {"tensor_parallel": 4, "context_parallel": 2}),
    ("deepseek-v3", {"tensor_parallel": 8}),
    ("deepseek-v3", {"tensor_parallel": 8, "expert_parallel": 8}),
    ("deepseek-v3", {"data_parallel": 8, "expert_parallel": 8}),
)
_DECODES, _PROMPT = StepShape(128, 2000), StepShape(chunks=((8192, 0),))

_TEXT = """# Parallelism

Made by `tools/regenerate.py` (`tools/parallelism_page.py`).

A replica may be split five ways, by fields of `cluster` ([scenario.md](scenario.md)). `servetwin explain` shows
what each adds to a step, `servetwin memory` what a rank holds. Copies of a whole model are `replicas`.

## Collectives

An all-reduce, all-gather, reduce-scatter, all-to-all or send takes its price from, in this order:

1. the table of the kernel profile at hand, measured on the accelerator within one node; a profile without collectives
   borrows those of another profile of the same accelerator, as they hardly depend on the engine;
2. constants fitted to NCCL's tables of other accelerators over the same kind of link: `launch + steps x step + share
   x bytes / (efficiency x link)`, where a ring of n takes n - 1 steps and (n - 1)/n of the bytes over each link, an
   all-reduce twice that (`simcore/cost/collectives.py`). The source says `alpha-beta`, and counts as outside of what
   was measured;
3. the roofline, if the scenario asks for it (`pricing.profile: roofline`).

Rates are of the datasheet, per direction. `cluster.network_gb_per_s` is that of the network (50 GB/s: one adapter
of 400 Gbit/s for each accelerator). Between PCIe from device to device and through the host `cluster.pcie` decides:
far less of the rate is left where driver, virtual machine or IOMMU forbid the former.

{constants}

Errors are held out: every fifth size. Sends over PCIe are fitted to all-to-alls of two ranks. Of the network only
sends were measured, at an adapter's rate that is recalled; its other constants follow from them. Of the L40S only
pairs were taken: four and eight ranks of that machine talk across host bridges, where all-reduces reach {crossing}
of the rate. `calibrate/ship_collectives.py` makes the constants, `hardware_profiles/collectives/alpha_beta.yaml`
holds them with their sources.

## Pipeline

`pipeline_parallel` cuts the layers into stages as vLLM does. As many batches are in flight: each is planned when
the first stage is free, then passes all stages in turn, and waits where a stage still has the one before. A request
is in one batch until it ends or gives way; batches share the queue, the slots (`max_running_requests` is of all
together) and KV memory. New requests join whichever batch is planned next, as in vLLM V1, so that a burst that fits
one batch's budget fills one batch alone, and the other stages idle. The summary states `utilisation.bubble_share`:
of the stages' time while some batch is under way, that in which they waited.

Between stages every tensor-parallel rank sends its share of hidden states and residual, which the receivers gather.
A stage is held until the next has it. The host prepares a batch once, on the first stage.

Limits: a batch may only push out requests of its own, and a request that was pushed out comes back only when there
is room for all that is known of it and of the prompts under way; a prompt's chunks follow each other, never side by
side in two stages; blocks that leave sliding windows are kept; steps are taken one by one, which is slower; orderings
by group, tiers of memory and swapping are refused.

## Experts

`expert_parallel` deals whole experts out to ranks. Prices come from tables that were measured so, where a profile
has them. In one data group all ranks see all tokens, compute what goes to their experts, and sum up by the
all-reduce that there is anyway (vLLM's `--enable-expert-parallel`).

With `data_parallel` each group of tensor-parallel ranks has requests, attention and KV cache of its own, and all
share the experts (DeepSeek-V3, arXiv:2412.19437). For every layer with experts tokens are sent to the ranks that
have theirs, and back: two all-to-alls of 16-bit activations, of each token to n (1 - (1 - 1/n)^k) ranks on the
mean. All groups step together, and the fullest sets the pace: decodes are dealt out evenly, prompts whole, the
longest first. A prompt in one group therefore holds up the decodes of all, which the batching policy
[group-balanced](policies.md#group-balanced) counters: prompts wait until they can start in all groups at once. Limits
of the scheduler and blocks are of the whole replica; a request that needs more blocks than a group has is rejected.
Engines state theirs for each group: a `max_num_tokens` of 8192 on each of eight is a `max_batched_tokens` of 65536.
What a scenario does not state is taken so from the presets `vllm-v1` and `trtllm`, and from the defaults of policies
under these; SGLang's limits are of all groups together. DeepSeek-V3 on eight B200 as TensorRT-LLM runs it, with
attention data parallelism that is balanced:

```yaml
model: deepseek-v3
engine: trtllm
cluster: {{accelerator: b200, data_parallel: 8, expert_parallel: 8}}
scheduler:
  batching: group-balanced
```

Without balance it is `in-flight`, the preset's.

Not modelled: what a group has of decodes beyond an even share, dispatch in fp8, exchanges that overlap with computing,
and experts held twice.

`pricing.routing` says how tokens spread. Tables named `power-law` were measured with a mild skew (with ranks of
experts, on the fullest of them; recalled from aiconfigurator's collector); by roofline an even load is taken. With
weights by expert the fullest rank's load multiplies its tokens, by the evenly loaded table. Weights are taken in
order: the first experts lie on the first rank.

## Context

`context_parallel` gives each rank an equal part of every prompt and of the KV cache. A prompt goes around a ring:
in as many rounds as ranks, each attends to the keys and values at hand while these are sent on, and the longer of
the two counts (Ring Attention, arXiv:2310.01889); tokens lie striped, so that all have alike to do (Striped
Attention, arXiv:2311.09431). In a decode each rank reads its part of every context and all gather the results;
everything else of a decode is computed by all of them. The weights are there as many times. It goes with
`tensor_parallel` alone.

## What it comes to

One step on eight H200, priced by `auto`: 128 decodes of 2,000 tokens each, and a prompt of 8,192. Of a pipeline the
first figure is what the batch takes through all stages, the second the time between two batches when every stage
has one.

{splits}
"""


def page() -> str:
    """The page."""
    return _TEXT.format(constants=_constants(), splits=_splits(), crossing=_across_bridges())


def _across_bridges() -> str:
    """The shares of PCIe's rate that large all-reduces of four and eight L40S reach."""
    rate, size = load_accelerator("l40s").pcie_bytes_per_s, 1 << 29
    found = [load_profile("l40s", "vllm-0.24.0").collective("all_reduce", "nccl", ranks) for ranks in (4, 8)]
    shares = [
        link_share("all_reduce", ranks) * size / price.seconds(size) / rate
        for ranks, price in zip((4, 8), found, strict=True)
        if price is not None
    ]
    return " and ".join(f"{share:.2f}" for share in shares)


def _constants() -> str:
    lines = [
        "| link | operation | ranks | launch (us) | step (us) | efficiency | median error | P90 |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (topology, operation), found in alpha_beta_constants().items():
        errors = found.errors
        shown = ("derived", "-") if errors is None else (f"{errors.median:.1%}", f"{errors.p90:.1%}")
        ranks = "-".join(map(str, dict.fromkeys(found.ranks)))
        times = f"{found.launch_s * 1e6:.1f} | {found.step_s * 1e6:.2f}"
        lines.append(
            f"| {_LINKS[topology]} | {operation} | {ranks} | {times} | {found.efficiency:.2f} | {' | '.join(shown)} |"
        )
    return "\n".join(lines)


def _splits() -> str:
    lines = ["| model | split | 128 decodes (ms) | prompt (ms) | KV tokens |", "|---|---|---:|---:|---:|"]
    for model, cluster in _SPLITS:
        simulation = Simulation.prepare(
            {
                "model": model,
                "cluster": {"accelerator": "h200-sxm"} | cluster,
                "pricing": {"profile": "auto"},
                "workload": {
                    "requests": 1,
                    "arrivals": {"name": "constant", "rate_per_s": 1},
                    "prompt_tokens": {"name": "fixed", "tokens": 1},
                    "output_tokens": {"name": "fixed", "tokens": 1},
                },
            },
            Path(),
        )
        split = ", ".join(f"{name.removesuffix('_parallel')} {size}" for name, size in cluster.items())
        times = " | ".join(_milliseconds(simulation, shape) for shape in (_DECODES, _PROMPT))
        tokens = simulation.memory.request_blocks // len(simulation.memory.layout.groups) * 16
        lines.append(f"| {model} | {split} | {times} | {tokens:,} |")
    return "\n".join(lines)


def _milliseconds(simulation: Simulation, shape: StepShape) -> str:
    step = explain_step(simulation, shape)
    between = f" ({max(step.stage_s) * 1e3:.1f})" if step.stage_s else ""
    return f"{step.seconds * 1e3:.1f}{between}"
