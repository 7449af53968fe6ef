"""Write ``docs/results/policy-results.md``: ``SERVETWIN_DATA=FOLDER python tools/policy_results.py [--check]``.

It takes some minutes on one core. The folder holds ``traces/azure2023``, as ``servetwin trace fetch`` puts it there.
With ``--check`` nothing is written, and the exit code is 1 if the document differs from what would be, but for what it
says of speed, which is measured and not simulated.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from textwrap import fill
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from policies.registry import built_in_names  # noqa: E402
from servetwin.api import prepare, simulate  # noqa: E402
from simcore.core.result import Result  # noqa: E402
from tools.policy_cases import (  # noqa: E402
    BACKLOG_BLOCKS,
    BACKLOG_PROMPT,
    BURSTS,
    CHAT,
    SATURATED,
    SCHEMES,
    backlog,
    long_prompt,
    output_tokens_per_busy_s,
    scheme,
    single_slot,
    toy,
)

TRACE = "traces/azure2023/AzureLLMInferenceTrace_conv.csv"
REQUESTS = 19366
TENANTS = [{"name": "many", "share": 0.8, "priority": 1}, {"name": "few", "share": 0.2, "priority": 0}]
SLO = {"ttft_s": {"p99": 2.0}, "tpot_s": {"p99": 0.05}}
LOADS = (0.7, 0.9, 1.1)
REPEATS = 3
SPEED = "## Speed"
SPEED_REQUESTS = 30_000
ORDERINGS = ("fcfs", *(name for name in built_in_names("ordering") if name != "fcfs"))
STATIC_KEYS = ("edf", "sjf", "two-level", "wfq")


def known_results() -> Iterator[str]:
    """What tests/e2e/test_known_results.py asserts, as numbers."""
    yield "## Known results"
    yield ""
    yield "The cases are in `tools/policy_cases.py`; `tests/e2e/test_known_results.py` holds the policies to them."
    yield ""
    yield "Outputs of 10, 2 and 1 tokens at one second per token, one at a time (Fu et al., NeurIPS 2024):"
    yield ""
    yield "| ordering | mean E2E per output token, s |"
    yield "|---|---:|"
    for name in ("fcfs", "sjf"):
        requests = toy(name).requests
        yield f"| {name} | {(requests['e2e_s'] / requests['output_tokens']).mean():.2f} |"
    yield ""
    yield "One slot, long-tailed outputs; Poisson arrivals at about 0.9 of what the slot can serve, and all at once:"
    yield ""
    yield "| ordering | mean E2E over time, s | mean E2E all at once, s |"
    yield "|---|---:|---:|"
    means = {name: [_mean_e2e_s(single_slot(name, rate)) for rate in (5.0, 1e6)] for name in ORDERINGS}
    for name in sorted(means, key=means.__getitem__):
        yield f"| {name} | {means[name][0]:.3f} | {means[name][1]:.2f} |"
    yield ""
    bound = 2 * max(BACKLOG_PROMPT, 2 * (BACKLOG_BLOCKS - 1) * 16)
    yield paragraph(
        "Two tenants with requests waiting all along, of whom one sends three times as many: greatest difference "
        f"of their weighted service. The bound of Sheng et al. (OSDI 2024, theorem 4.4) is {bound:,} here, M being "
        "KV memory."
    )
    yield ""
    yield "| ordering | after 4 s | after 8 s |"
    yield "|---|---:|---:|"
    for name in ("fcfs", "vtc", "drr", "wfq", "drf"):
        short, long = (backlog(name, end_s).summary["fairness"]["max_service_difference"] for end_s in (4.0, 8.0))
        yield f"| {name} | {short:,.0f} | {long:,.0f} |"
    yield ""
    yield paragraph(
        "Thirty-two slots and long-tailed outputs, output tokens per second in which the accelerator works. With "
        "a full queue `static` and `dynamic` are the same, since every batch is full; a window pays where bursts "
        "meet an idle server."
    )
    yield ""
    yield "| batching | full queue | bursts |"
    yield "|---|---:|---:|"
    for name in SCHEMES:
        rates = [output_tokens_per_busy_s(scheme(name, arrivals)) for arrivals in (SATURATED, BURSTS)]
        yield f"| {name} | {rates[0]:,.0f} | {rates[1]:,.0f} |"
    yield ""
    yield "Sixty-four requests decode when a prompt of 32,000 tokens comes (llama-3.1-8b, one H100):"
    yield ""
    yield "| batching | token budget | P99 ITL of the others, ms | worst ITL, ms | TTFT of the long prompt, s |"
    yield "|---|---:|---:|---:|---:|"
    yield _long_prompt_row("no long prompt", {"name": "chunked-prefill"}, 0)
    for name, budget in (
        ("prefill-first", 32768),
        ("chunked-prefill", 8192),
        ("chunked-prefill", 2048),
        ("chunked-prefill", 512),
    ):
        yield _long_prompt_row(name, {"name": name, "max_batched_tokens": budget}, 1)
    yield _long_prompt_row("chunked-prefill, adaptive", {"name": "chunked-prefill", "tpot_target_s": 0.02}, 1)


def paragraph(text: str) -> str:
    """The text in lines of 120 characters."""
    return fill(text, 120)


def _mean_e2e_s(result: Result) -> float:
    return float(result.requests["e2e_s"].mean())


def _long_prompt_row(name: str, batching: dict[str, Any], documents: int) -> str:
    result = long_prompt(batching, documents)
    itl_s = result.summary["metrics"]["itl_s"]
    ttft = f"{result.requests['ttft_s'][-1]:.2f}" if documents else ""
    target = f"steps of {1e3 * batching['tpot_target_s']:.0f} ms" if "tpot_target_s" in batching else ""
    budget = batching.get("max_batched_tokens", target) if documents else ""
    return f"| {name} | {budget} | {1e3 * itl_s['p99']:.1f} | {1e3 * itl_s['max']:.1f} | {ttft} |"


def azure(ordering: str, rate_scale: float, trace: Path) -> dict[str, Any]:
    """The scenario of the table."""
    return {
        **CHAT,
        "scheduler": {"ordering": ordering},
        "workload": {"trace": str(trace), "requests": REQUESTS, "rate_scale": rate_scale, "tenants": TENANTS},
        "slo": SLO,
    }


def orderings_on_azure(trace: Path) -> Iterator[str]:
    """All orderings on a real trace at three loads."""
    recorded = simulate(azure("fcfs", 1.0, trace))
    recorded_per_s = REQUESTS / float(recorded.requests["arrival_s"].max())
    saturated = simulate(azure("fcfs", 1e6, trace))
    capacity_per_s = REQUESTS / saturated.summary["run"]["simulated_s"]
    yield "## Orderings on a real trace"
    yield ""
    yield paragraph(
        f"All {REQUESTS:,} requests of the Azure 2023 conversation trace (Patel et al., ISCA 2024), on one H100 "
        "with llama-3.1-8b and the settings of vllm-v1, arrivals sped up so that the load is 0.7, 0.9 and 1.1 of "
        f"capacity. Capacity is what fcfs serves if all arrive at once: {capacity_per_s:.1f} requests/s; the trace "
        f"has {recorded_per_s:.1f}."
    )
    yield ""
    yield paragraph(
        "The trace names no senders, so requests fall at random to two tenants: `many` sends 80% at level 1, "
        "`few` 20% at the more urgent level 0. Goodput counts requests with TTFT up to 2 s and TPOT up to 50 ms. "
        "Jain's index is of the tenants' service while both have requests waiting: 1 if it is equal, 0.5 if one has "
        "all (`simcore/metrics/fairness.py`). Parameters are defaults; sjf, srpt and hybrid then know the true "
        "lengths, so they show the bound of what prediction can bring. One seed: differences of a few percent "
        "mean nothing."
    )
    for load in LOADS:
        yield ""
        yield f"### {load} of capacity"
        yield ""
        yield "| ordering | mean TTFT, s | mean E2E, s | P99 TTFT, s | P99 TPOT, ms | goodput, requests/s | Jain |"
        yield "|---|---:|---:|---:|---:|---:|---:|"
        for name in ORDERINGS:
            yield _row(name, simulate(azure(name, load * capacity_per_s / recorded_per_s, trace)))


def _row(name: str, result: Result) -> str:
    metrics = result.summary["metrics"]
    ttft_s, tpot_s, e2e_s = metrics["ttft_s"], metrics["tpot_s"], metrics["e2e_s"]
    goodput = result.summary["throughput"]["goodput_requests_per_s"]
    jain = result.summary["fairness"]["jain_index"]
    return (
        f"| {name} | {ttft_s['mean']:.2f} | {e2e_s['mean']:.2f} | {ttft_s['p99']:.2f} | {1e3 * tpot_s['p99']:.1f} "
        f"| {goodput:.2f} | {'' if jain is None else f'{jain:.3f}'} |"
    )


def speed() -> Iterator[str]:
    """How fast each ordering simulates, against fcfs in the same process and in turn with it."""
    yield SPEED
    yield ""
    yield paragraph(
        "Simulated requests per second over those of fcfs, run in turn with it, the median of three: 30,000 "
        "requests from ten tenants and two levels at about 1.05 of capacity, with hundreds waiting."
    )
    yield ""
    yield "| ordering | ratio |"
    yield "|---|---:|"
    for name in ORDERINGS[1:]:
        ratios = []
        for _ in range(REPEATS):
            base_s, own_s = _seconds("fcfs"), _seconds(name)
            ratios.append(base_s / own_s)
        yield f"| {name} | {median(ratios):.2f} |"


def _seconds(ordering: str) -> float:
    tenants = [{"name": f"tenant-{index}", "share": 0.1, "priority": index % 2} for index in range(10)]
    workload = {
        "requests": SPEED_REQUESTS,
        "arrivals": {"name": "poisson", "rate_per_s": 28.0},
        "prompt_tokens": {"name": "lognormal", "median": 800, "sigma": 0.7, "max": 8000},
        "output_tokens": {"name": "lognormal", "median": 170, "sigma": 0.6, "max": 2000},
        "tenants": tenants,
    }
    simulation = prepare({**CHAT, "scheduler": {"ordering": ordering}, "workload": workload})
    started = perf_counter()
    simulation.run()
    return perf_counter() - started


def simulated(data: Path) -> str:
    """The document up to what it says of speed."""
    lines = [
        "# What the policies do",
        "",
        paragraph(
            "Made by `tools/policy_results.py`, which compares with `--check`. All times but those under Speed are "
            "simulated, so the same everywhere."
        ),
        "",
        *known_results(),
        "",
        *orderings_on_azure(data / TRACE),
    ]
    return "\n".join(lines) + "\n"


def main(check: bool) -> int:
    """Write the document, or compare; returns the exit code."""
    text = simulated(Path(os.environ.get("SERVETWIN_DATA", ROOT.parent / "shared" / "data")))
    document = ROOT / "docs" / "results" / "policy-results.md"
    if check:
        return int(not document.exists() or document.read_text(encoding="utf-8").partition(f"\n{SPEED}\n")[0] != text)
    document.write_text("\n".join((text, *speed())) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
