"""How the cost of a run grows with the replicas of its cluster, most of which wait."""

from time import process_time

from servetwin.api import prepare

REPLICAS = (1, 100, 1_000, 10_000)
REQUESTS = 1_000


def report() -> list[str]:
    """Lines of Markdown: seconds of one core for a run of as many requests on ever more replicas."""
    lines = [
        f"A run of {REQUESTS:,} requests, summary included, by the replicas of its cluster:",
        "",
        "| replicas | s | µs a replica |",
        "|---:|---:|---:|",
    ]
    for replicas in REPLICAS:
        seconds = seconds_with(replicas)
        lines.append(f"| {replicas:,} | {seconds:.2f} | {1e6 * seconds / replicas:,.0f} |")
    return lines


def seconds_with(replicas: int, requests: int = REQUESTS) -> float:
    """Seconds of one core for one run."""
    simulation = prepare(
        {
            "model": "smollm2-135m",
            "cluster": {"accelerator": "h100-sxm", "replicas": replicas},
            "workload": {
                "requests": requests,
                "arrivals": {"name": "poisson", "rate_per_s": 10.0},
                "prompt_tokens": {"name": "fixed", "tokens": 20},
                "output_tokens": {"name": "fixed", "tokens": 5},
            },
        }
    )
    started = process_time()
    simulation.run()
    return process_time() - started
