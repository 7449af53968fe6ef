"""Writes docs/reference/parallelism.md: ``tools/regenerate.py`` calls it."""

from pathlib import Path

from simcore.build.explanation import explain_step
from simcore.build.simulation import Simulation
from simcore.cost.breakdown import StepShape
from simcore.cost.calibrated import load_profile
from simcore.cost.collectives import NETWORK, NVLINK, PCIE, PCIE_HOST, alpha_beta_constants, link_share
from simcore.hardware import load_accelerator
from simcore.scenario.sections import Cluster
from tools.page_template import filled

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


def page() -> str:
    """The page."""
    [chunk, _] = _PROMPT.chunks[0]
    return filled(
        Path(__file__).with_suffix(".md"),
        constants=_constants(),
        splits=_splits(),
        crossing=_across_bridges(),
        network=f"{Cluster.model_fields['network_gb_per_s'].default:g}",
        decodes=f"{_DECODES.decodes}",
        context=f"{_DECODES.context_tokens:,}",
        prompt=f"{chunk:,}",
    )


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
