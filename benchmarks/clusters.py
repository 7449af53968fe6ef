"""How the cost of a request grows with the replicas of a cluster, all of them loaded alike.

``python -m benchmarks.clusters [--requests N] [--replicas N ...]`` prints the table; a quick one by default.
"""

import argparse
import resource
from collections.abc import Sequence
from time import process_time
from typing import Any

from benchmarks.bare_loop import Load, simulate
from servetwin.api import prepare

REPLICAS = (8, 16, 32, 64, 128, 256, 512)
REQUESTS = 20_000
_RATE_PER_REPLICA, _SHARED_TOKENS, _OWN_TOKENS, _OUTPUT_TOKENS = 10.0, 800, 200, 200


def report(requests: int = REQUESTS, replicas: Sequence[int] = REPLICAS) -> list[str]:
    """Lines of Markdown: requests per second of CPU, and as a multiple of the bare loop's beside each."""
    lines = [
        f"Clusters at {_RATE_PER_REPLICA:g} requests/s a replica, routed by prefix-affinity, a prefix cache on each:",
        f"{requests:,} requests of {_SHARED_TOKENS:,} shared and {_OWN_TOKENS:,} own tokens, {_OUTPUT_TOKENS:,} out.",
        "The bare loop, of one replica, serves as many in the same run; in brackets the speed as a multiple of it:",
        "",
        "| replicas | requests per second | prefix hits |",
        "|---:|---:|---:|",
    ]
    for count in replicas:
        simulation = prepare(scenario(count, requests))
        started = process_time()
        result = simulation.run()
        ours_s = process_time() - started
        load = Load(requests, _RATE_PER_REPLICA, _SHARED_TOKENS + _OWN_TOKENS, _OUTPUT_TOKENS)
        started = process_time()
        simulate(load)
        bare_s = process_time() - started
        hits = result.summary["kv"]["prefix_hit_rate"]
        lines.append(f"| {count:,} | {requests / ours_s:,.0f} ({bare_s / ours_s:.2f}) | {hits:.0%} |")
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return [*lines, "", f"Peak memory of the process: {peak_bytes / 1e9:.2f} GB."]


def scenario(replicas: int, requests: int) -> dict[str, Any]:
    """An 8B model on H100, a fifth of whose prompts is their own; four texts a replica are shared."""
    shared = {"name": "shared", "tokens": {"name": "fixed", "tokens": _SHARED_TOKENS}, "among": 4 * replicas}
    return {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "h100-sxm", "replicas": replicas, "routing": "prefix-affinity"},
        "memory": {"prefix_caching": True},
        "workload": {
            "requests": requests,
            "arrivals": {"name": "poisson", "rate_per_s": _RATE_PER_REPLICA * replicas},
            "prefix": [shared],
            "prompt_tokens": {"name": "fixed", "tokens": _OWN_TOKENS},
            "output_tokens": {"name": "fixed", "tokens": _OUTPUT_TOKENS},
        },
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clusters")
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--replicas", type=int, nargs="+", default=REPLICAS)
    print("\n".join(report(**vars(parser.parse_args()))))
