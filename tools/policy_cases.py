"""Small cases in which it is known what a policy must do: tests assert it, and policy_results.py prints the figures."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from servetwin.api import simulate
from simcore.core.result import Result

# What is said of policies must not hang on one engine's kernels, so all are priced by roofline.
HOST = {
    "step_s": 0.5e-3,
    "per_request_s": 5e-6,
    "launch_s": 0.0,
    "layer_s": 0.0,
    "request_s": 0.0,
    "per_prompt_token_s": 0.0,
    "async_scheduling": False,
}
H100 = {"cluster": {"accelerator": "h100-sxm"}, "pricing": {"profile": "roofline"}, "host": HOST}
"""Fixed prices, no time before the queue and no slot held by who has ended: results hang on the policies alone."""
SMALL = {"model": "smollm2-135m", **H100}
CHAT = {"model": "llama-3.1-8b", **H100}
ONE_SLOT = {"name": "chunked-prefill", "max_running_requests": 1}
TWO_LEVELS = [{"name": "a", "share": 0.8, "priority": 1}, {"name": "b", "share": 0.2, "priority": 0}]

Row = tuple[float, int, int]
"""Arrival, prompt tokens and output tokens of a request."""


def scheduled(base: dict[str, Any], workload: dict[str, Any], **scheduler: Any) -> Result:
    """Run a workload under these policies."""
    return simulate({**base, "scheduler": scheduler, "workload": workload})


def toy(ordering: str) -> Result:
    """Outputs of 10, 2 and 1 tokens at a second per token, one at a time (an example of Fu et al., NeurIPS 2024).

    A prompt of one token yields the first token of the output in its step, so n tokens take n steps. A step takes a
    second of the host, and some 0.0003 s of the accelerator on top.
    """
    rows = [(0.0, 1, 10), (0.0, 1, 2), (0.0, 1, 1)]
    with TemporaryDirectory() as folder:
        document = {
            **SMALL,
            "host": {**HOST, "step_s": 1.0, "per_request_s": 0.0},
            "scheduler": {"ordering": ordering, "batching": ONE_SLOT},
            "workload": trace_of(rows, Path(folder)),
        }
        return simulate(document, base_dir=folder)


def single_slot(ordering: str, rate_per_s: float = 5.0, requests: int = 400) -> Result:
    """One request at a time, long-tailed outputs, by default at about nine tenths of what one slot can serve."""
    workload = {
        "requests": requests,
        "arrivals": {"name": "poisson", "rate_per_s": rate_per_s},
        "prompt_tokens": {"name": "fixed", "tokens": 20},
        "output_tokens": {"name": "lognormal", "median": 80, "sigma": 1.0, "max": 2000},
        "tenants": TWO_LEVELS,
    }
    return scheduled(SMALL, workload, ordering=ordering, batching=ONE_SLOT)


BACKLOG_BLOCKS, BACKLOG_PROMPT = 500, 200


def backlog(ordering: Any, end_s: float, slots: int = 64, rate_per_s: float = 400.0) -> Result:
    """Two tenants that always have requests waiting; "a" sends three times as many as "b", of the same kind."""
    kind = {
        "prompt_tokens": {"name": "uniform", "low": 20, "high": BACKLOG_PROMPT},
        "output_tokens": {"name": "lognormal", "median": 100, "sigma": 0.6, "max": 400},
        "duration_s": end_s,
    }
    streams = [
        {"tenant": name, "arrivals": {"name": "poisson", "rate_per_s": times * rate_per_s}, **kind}
        for name, times in (("a", 3), ("b", 1))
    ]
    return simulate(
        {
            **SMALL,
            "memory": {"num_gpu_blocks": BACKLOG_BLOCKS},
            "scheduler": {
                "ordering": ordering,
                "batching": {"name": "chunked-prefill", "max_running_requests": slots},
            },
            "workload": {"streams": streams},
            "measurement": {"end_s": end_s},
        }
    )


SCHEMES = ("static", "dynamic", "prefill-first", "chunked-prefill")


def scheme(batching: str, arrivals: dict[str, Any], requests: int = 1000) -> Result:
    """Thirty-two slots, long-tailed outputs."""
    policy: dict[str, Any] = {"name": batching, "max_running_requests": 32}
    if batching == "dynamic":
        policy["window_s"] = 0.5
    workload = {
        "requests": requests,
        "arrivals": arrivals,
        "prompt_tokens": {"name": "lognormal", "median": 300, "sigma": 0.8, "max": 4000},
        "output_tokens": {"name": "lognormal", "median": 150, "sigma": 1.0, "max": 2000},
    }
    return scheduled(CHAT, workload, batching=policy)


SATURATED = {"name": "closed-loop", "concurrency": 64}
"""Twice as many clients as slots, and none of them ever thinks."""
BURSTS = {"name": "on-off", "on_rate_per_s": 80.0, "on_s": 0.4, "off_s": 30.0}
"""About thirty-two requests within 0.4 s, and then half a minute in which they are all served."""


def output_tokens_per_busy_s(result: Result) -> float:
    """Output tokens over the time in which steps ran."""
    busy_s = (result.steps["end_s"] - result.steps["start_s"]).sum()
    return float(result.requests["output_tokens"].sum() / busy_s)


def long_prompt(batching: dict[str, Any], documents: int = 1) -> Result:
    """Sixty-four requests decode 80 tokens each when a prompt of 32,000 tokens comes, whose answer is one token.

    So of all gaps between tokens one in 79 falls on the prompt if it is prefilled in one step.
    """
    rows = [(0.0, 100, 80)] * 64 + [(0.15, 32000, 1)] * documents
    with TemporaryDirectory() as folder:
        return simulate(
            {**CHAT, "scheduler": {"batching": batching}, "workload": trace_of(rows, Path(folder))}, base_dir=folder
        )


def trace_of(rows: Sequence[Row], folder: Path) -> dict[str, Any]:
    """A workload section of these requests, written to the folder."""
    lines = ["arrival_s,prompt_tokens,output_tokens", *(",".join(map(str, row)) for row in rows)]
    (folder / "requests.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"trace": "requests.csv", "format": "csv"}
