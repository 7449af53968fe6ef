"""Runs with tiers below GPU memory: what they save, what is counted, and who waits for a load."""

import numpy as np
import pytest

from simcore.build.simulation import Simulation
from simcore.core.content import Content, Run
from simcore.core.errors import InputError
from tests.e2e import test_tiers_fast_forward
from tests.e2e.scenarios import merged, synthetic
from tests.e2e.test_tiers_fast_forward import run_with_content

BLOCK = 16
TWO_DOCUMENTS = [(0.0, 1600, 2), (2.0, 1600, 2), (4.0, 1600, 2), (6.0, 1600, 2)]
"""Requests that come one after another; by turns they share one of two documents (of 65 and more tokens)."""
BASE = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm"},
    "host": {"request_s": 0.0, "per_prompt_token_s": 0.0},
    "memory": {"num_gpu_blocks": 120, "tiers": [{"name": "cpu", "capacity_gb": 10}]},
    "workload": {"rows": TWO_DOCUMENTS},
}


@pytest.fixture
def documents(monkeypatch):
    """Let requests say which document they share: the whole prompt, by turns of two."""

    def content_of(number, prompt_tokens):
        return Content([Run(number % 2 * 10**6, prompt_tokens)], (1 + number) * 10**9)

    monkeypatch.setattr(test_tiers_fast_forward, "content_of", content_of)


def run(folder, *changes, **options):
    scenario = BASE
    for change in changes:
        scenario = merged(scenario, change)
    return run_with_content(scenario, folder, check=True, **options)


def test_what_gpu_memory_could_not_keep_is_loaded(documents, tmp_path):
    """GPU memory holds one document. Without a tier, the other one's requests would find nothing."""
    loaded = run(tmp_path)
    alone = run(tmp_path, {"memory": {"tiers": []}})
    assert loaded.requests["cached_tokens"].tolist() == [0, 0, 1584, 1584]
    assert alone.requests["cached_tokens"].sum() < 2 * 1584
    assert (loaded.requests["ttft_s"][2:] < 0.6 * alone.requests["ttft_s"][:2].mean()).all()


def test_hits_are_counted_by_tier(documents, tmp_path):
    kv = run(tmp_path).summary["kv"]
    assert kv["prefix_hit_rate"] == pytest.approx(2 * 1584 / 6400)
    rates = {name: tier["hit_rate"] for name, tier in kv["tiers"].items()}
    assert sum(rates.values()) == pytest.approx(kv["prefix_hit_rate"])
    assert rates["cpu"] > 0.3
    warm = run(tmp_path, {"measurement": {"warmup_s": 3.0}}).summary["kv"]
    assert sum(tier["hit_rate"] for tier in warm["tiers"].values()) == pytest.approx(1584 / 1600)


def test_recomputation_is_loaded_but_never_counts(tmp_path):
    """Requests that share nothing but come back after preemptions."""
    rows = [(0.0, 500, 400), (0.0, 500, 400), (0.0, 500, 400)]
    result = run_with_content(merged(BASE, {"workload": {"rows": rows}}), tmp_path, check=True)
    kinds = result.transfers["kind"].tolist()
    assert result.summary["preemptions"]["total"] > 0
    assert "load" in kinds
    hits = result.summary["kv"]["tiers"]
    assert result.requests["cached_tokens"].sum() == round(1500 * sum(tier["hit_rate"] for tier in hits.values()))
    assert hits["cpu"]["hit_rate"] == 0.0


def test_others_are_admitted_while_one_loads_and_it_goes_before_the_queue(documents, tmp_path):
    """The third request loads for long over a slow link; the short ones behind it run meanwhile, all but the last."""
    rows = [*TWO_DOCUMENTS[:2], (4.0, 1600, 2), (4.0, 20, 300), (4.0, 21, 2)]
    link = {"host_link": {"to_gpu_gb_per_s": 1.0}}  # about 0.2 s
    result = run(tmp_path, {"workload": {"rows": rows}, "memory": link})
    load = np.flatnonzero(result.transfers["kind"] == "load")
    assert len(load) == 1
    start_s, end_s = (float(result.transfers[name][load[0]]) for name in ("start_s", "end_s"))
    requests = result.requests
    assert start_s == 4.0
    assert 0.1 < end_s - start_s < 0.3
    assert requests["first_scheduled_s"].tolist()[3:] == [4.0, 4.0]
    # The first plan after the load ended: within the step that ran then.
    assert 0 <= requests["first_scheduled_s"][2] - end_s < 0.02
    assert requests["end_s"][4] < end_s < requests["end_s"][3]

    few = {"scheduler": {"batching": {"max_running_requests": 1}}}
    rows = [*TWO_DOCUMENTS[:2], (4.0, 1600, 2), (4.0, 20, 100), (4.0, 21, 2)]
    result = run(tmp_path, {"workload": {"rows": rows}, "memory": link}, few)
    scheduled_s = result.requests["first_scheduled_s"]
    assert scheduled_s[3] < scheduled_s[2] < scheduled_s[4]


def test_only_what_is_faster_is_loaded(documents, tmp_path):
    slow = {"memory": {"host_link": {"to_gpu_gb_per_s": 0.5}}}
    choosy = {"memory": {"load_from_tiers": "if-faster"}}
    fast_s, slow_s, choosy_s, both_s = (
        run(tmp_path, *changes).requests["ttft_s"][2] for changes in ((), (slow,), (choosy,), (slow, choosy))
    )
    assert choosy_s == fast_s < both_s < slow_s


def test_prefetching_reads_while_requests_queue(documents, tmp_path):
    """The documents have left CPU memory for a slow disk when they are asked for, by requests that must queue."""
    ssd = {"name": "ssd", "capacity_gb": 10, "read_gb_per_s": 1.0, "write_gb_per_s": 5.0}
    tiers = [{"name": "cpu", "capacity_gb": 101 * BLOCK * 131072 / 1e9}, ssd]
    crowded = {
        "memory": {"tiers": tiers},
        "scheduler": {"batching": {"max_running_requests": 1}},
        "workload": {"rows": [*TWO_DOCUMENTS[:2], (4.0, 10, 30), (4.0, 10, 30), (4.0, 1600, 2)]},
    }
    waiting, prefetching = (
        run(tmp_path, crowded, {"memory": {"prefetch_from_tiers": prefetches}}) for prefetches in (False, True)
    )
    assert {"load", "prefetch"} & set(waiting.transfers["kind"].tolist()) == {"load"}
    assert {"load", "prefetch"} & set(prefetching.transfers["kind"].tolist()) == {"load", "prefetch"}
    saved_s = float(waiting.requests["ttft_s"][4] - prefetching.requests["ttft_s"][4])
    (read,) = np.flatnonzero(waiting.transfers["link"] == "ssd to CPU")
    read_s = float(waiting.transfers["end_s"][read] - waiting.transfers["start_s"][read])
    assert read_s > 0.1
    assert saved_s == pytest.approx(read_s, rel=0.05)
    hit_rates = [result.summary["kv"]["tiers"] for result in (waiting, prefetching)]
    assert hit_rates[0]["ssd"]["hit_rate"] == pytest.approx(hit_rates[1]["cpu"]["hit_rate"], rel=0.05)


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        ({"prefix_caching": False}, "none without prefix_caching"),
        ({"prefix_cache": {"index": "radix"}}, "none unless prefix_cache.index is hash"),
        ({"tiers": [{"name": "cpu", "capacity_gb": 1e-6}]}, "memory.tiers.0.capacity_gb is 1e-06, expected at least"),
        ({"tiers": [{"name": "cpu", "capacity_gb": 1}] * 2}, "each tier at most once, in the order cpu, ssd, remote"),
        ({"tiers": [{"name": "disk", "capacity_gb": 1}]}, "memory.tiers.0"),
        ({"tiers": [{"name": "ssd", "capacity_gb": 1}]}, "read_gb_per_s"),
        ({"load_from_tiers": "if-fast"}, "Did you mean 'if-faster'?"),
    ],
)
def test_bad_input(memory, words, tmp_path):
    document = merged(BASE, {"memory": memory})
    document["workload"] = synthetic({"name": "constant", "rate_per_s": 1.0}, 1, 1, requests=1)
    with pytest.raises(InputError) as error:
        Simulation.prepare(document, tmp_path)
    assert words in str(error.value)
