"""How the fairness figures of a run grow with its tenants, each of whom sends one request."""

from time import process_time

import numpy as np

from simcore.metrics.fairness import fairness

TENANTS = (10_000, 100_000, 1_000_000)


def report() -> list[str]:
    """Lines of Markdown: seconds of one core for the fairness section of a summary."""
    lines = ["Fairness figures, one request of each tenant:", "", "| tenants | s | µs a tenant |", "|---:|---:|---:|"]
    for tenants in TENANTS:
        seconds = _seconds(tenants)
        lines.append(f"| {tenants:,} | {seconds:.2f} | {1e6 * seconds / tenants:.1f} |")
    return lines


def _seconds(tenants: int) -> float:
    random = np.random.default_rng(0)
    arrival_s = np.sort(random.uniform(0.0, tenants / 1000, tenants))
    first_scheduled_s = arrival_s + random.exponential(1.0, tenants)
    first_token_s = first_scheduled_s + 0.1
    end_s = first_token_s + 0.5
    requests = {
        "tenant": np.array([f"tenant-{number}" for number in range(tenants)]),
        "state": np.full(tenants, "finished"),
        "prompt_tokens": np.full(tenants, 20),
        "output_tokens": np.full(tenants, 5),
        "arrival_s": arrival_s,
        "first_scheduled_s": first_scheduled_s,
        "first_token_s": first_token_s,
        "end_s": end_s,
        "ttft_s": first_token_s - arrival_s,
        "tpot_s": np.full(tenants, 0.125),
        "e2e_s": end_s - arrival_s,
    }
    good = np.ones(tenants, dtype=np.bool_)
    started = process_time()
    fairness(requests, float(end_s.max()), good, ~good)
    return process_time() - started
