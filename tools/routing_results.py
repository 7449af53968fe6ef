"""Write ``docs/results/routing.md``: ``python tools/routing_results.py [--check]``. It takes some minutes on one core.

With ``--check`` nothing is written, and the exit code is 1 if the document differs from what would be.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from papers.harness.traces import public_trace  # noqa: E402
from servetwin.api import simulate  # noqa: E402
from simcore.core.result import Result  # noqa: E402
from tools.publishing import publish  # noqa: E402

SCENARIO = ROOT / "scenarios" / "multi-turn-chat.yaml"
POLICIES = (
    "round-robin",
    "random",
    "power-of-two",
    "least-requests",
    "least-tokens",
    "session-sticky",
    "prefix-affinity",
    "kv-aware",
)
REPLICAS = (1, 4, 16)
REQUESTS_EACH = 250
ON_A_TRACE: Mapping[str, Any] = {
    "round-robin": "round-robin",
    "least-tokens": "least-tokens",
    "prefix-affinity": "prefix-affinity",
    "kv-aware, events after 10 ms": {"name": "kv-aware", "delay_s": 0.01},
    "kv-aware, events after 1 s": {"name": "kv-aware", "delay_s": 1.0},
    "kv-aware, events after 30 s": {"name": "kv-aware", "delay_s": 30.0},
}
TRACE_REQUESTS = 2500
TRACE_REPLICAS = 4


@dataclass(frozen=True, slots=True)
class Routed:
    """What a run with one policy gave: shares of 1, and seconds."""

    hit_rate: float
    ttft_mean_s: float
    ttft_p99_s: float
    busiest: float
    """Requests of the replica that got most of them, over the mean."""


def routed(policy: str, replicas: int, requests_each: int = REQUESTS_EACH) -> Routed:
    """Run multi-turn chat at the same load per replica, whatever their number."""
    scenario: dict[str, Any] = yaml.safe_load(SCENARIO.read_text(encoding="utf-8"))
    rate_per_s = scenario["workload"]["arrivals"]["rate_per_s"]
    scenario["cluster"] |= {"replicas": replicas, "routing": policy}
    scenario["workload"] |= {
        "requests": requests_each * replicas,
        "arrivals": {"name": "poisson", "rate_per_s": rate_per_s * replicas},
    }
    return _figures(simulate(scenario), replicas)


def routed_conversations(routing: Any) -> Routed:
    """Serve the first requests of Mooncake's conversation trace as they came."""
    trace = public_trace("mooncake-conversation", "mooncake/conversation_trace.jsonl")
    scenario = {
        "model": "llama-3.1-70b",
        "cluster": {
            "accelerator": "h100-sxm",
            "tensor_parallel": 8,
            "replicas": TRACE_REPLICAS,
            "routing": routing,
        },
        "workload": {"trace": str(trace.resolve()), "requests": TRACE_REQUESTS},
    }
    return _figures(simulate(scenario), TRACE_REPLICAS)


def _figures(result: Result, replicas: int) -> Routed:
    ttft_s = result.summary["metrics"]["ttft_s"]
    counts = np.bincount(result.requests["replica"], minlength=replicas)
    return Routed(
        result.summary["kv"]["prefix_hit_rate"],
        ttft_s["mean"],
        ttft_s["p99"],
        float(counts.max() / counts.mean()),
    )


def table(results: dict[tuple[str, int], Routed], policies: Sequence[str], replicas: Sequence[int]) -> Iterator[str]:
    """One row per policy, and for each number of replicas what it gave."""
    titles = [f"{title}, {count}" for count in replicas for title in ("hits %", "TTFT ms", "P99 ms", "busiest")]
    yield f"| policy | {' | '.join(titles)} |"
    yield "|---|" + "---:|" * len(titles)
    for policy in policies:
        cells = []
        for count in replicas:
            one = results[policy, count]
            cells += [f"{100 * one.hit_rate:.1f}", f"{1e3 * one.ttft_mean_s:.1f}"]
            cells += [f"{1e3 * one.ttft_p99_s:.1f}", f"{one.busiest:.2f}"]
        yield f"| `{policy}` | {' | '.join(cells)} |"


def trace_table(results: Mapping[str, Routed]) -> Iterator[str]:
    """One row per policy."""
    yield "| policy | hits % | TTFT mean s | TTFT P99 s | busiest |"
    yield "|---|" + "---:|" * 4
    for policy, one in results.items():
        figures = f"{100 * one.hit_rate:.1f} | {one.ttft_mean_s:.2f} | {one.ttft_p99_s:.2f} | {one.busiest:.2f}"
        yield f"| `{policy.replace(', ', '`, ', 1)}{'' if ', ' in policy else '`'} | {figures} |"


def document() -> str:
    """The page."""
    results = {(policy, count): routed(policy, count) for count in REPLICAS for policy in POLICIES}
    text = (
        "Made by `tools/routing_results.py`, which compares with `--check`. `scenarios/multi-turn-chat.yaml` with "
        f"{REQUESTS_EACH} requests and 1.5 sessions/s for each replica, so that the load per replica is the same in "
        "every column. Every session begins with one system prompt, and every turn repeats all that was said. "
        "Shown are, for so many replicas, the share of the prompt tokens found in the prefix cache, the mean and the "
        "99th percentile of TTFT, and the requests of the replica that got most over the mean. One seed."
    )
    why = (
        "With more replicas, a policy that knows nothing of caches finds less: a turn finds its conversation only if "
        "it comes to the replica of an earlier one. `session-sticky`, `prefix-affinity` and `kv-aware` send it there."
    )
    of_trace = (
        f"The first {TRACE_REQUESTS:,} requests of Mooncake's conversation trace as they came, Llama-3.1-70B on "
        f"{TRACE_REPLICAS} replicas of eight H100. `kv-aware` knows of blocks that are stored and removed by events "
        "that come late. The load is near what the replicas can carry. `prefix-affinity` finds most, and pays for it "
        "by queues. Turns of a conversation are minutes apart, so late events do no harm."
    )
    conversations = {name: routed_conversations(routing) for name, routing in ON_A_TRACE.items()}
    lines = ["# Routing", "", fill(text, width=120), "", *table(results, POLICIES, REPLICAS)]
    lines += [
        "",
        fill(why, width=120),
        "",
        "## A recorded trace",
        "",
        fill(of_trace, width=120, break_on_hyphens=False),
        "",
    ]
    lines += trace_table(conversations)
    return "\n".join(lines) + "\n"


def main(check: bool) -> int:
    """Write the document, or compare; returns the exit code."""
    return publish(lambda folder: _write(folder / "routing.md"), check)


def _write(path: Path) -> None:
    path.write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
