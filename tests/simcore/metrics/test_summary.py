"""Every figure of the summary on tables of a few rows, made by hand, so that each value can be worked out on paper."""

from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from simcore.build.simulation import Simulation
from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.core.token_gaps import CountedGaps, merged
from simcore.cost.price_shares import RangeCounter
from simcore.cost.work import WorkCounter
from simcore.metrics.run_facts import PoolFacts, RunFacts
from simcore.metrics.summary import summarise

NAN = float("nan")
# Two replicas of two accelerators each, a window from 2 s to 10 s.
DOCUMENT = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "replicas": 2, "tensor_parallel": 2, "price_usd_per_h": 3.0},
    "memory": {"num_gpu_blocks": 101, "block_size_tokens": 16, "prefix_caching": True},
    "workload": {"trace": "requests.csv"},
    "slo": {"ttft_s": {"p50": 1.0}, "e2e_s": {"p90": 6.0}},
    "measurement": {"warmup_s": 2.0},
}
REQUESTS = {
    "request_id": [0, 1, 2, 3, 4, 5],
    "state": ["finished", "finished", "finished", "finished", "rejected", "unfinished"],
    "reason": ["", "", "", "", "too long", ""],
    "tenant": [""] * 6,
    "prompt_tokens": [100, 200, 300, 400, 5000, 600],
    "output_tokens": [10, 20, 30, 40, 0, 5],
    # the first ends before the window, the second ends in it, the others arrive in it
    "arrival_s": [0.0, 1.0, 2.0, 3.0, 4.0, 9.0],
    "end_s": [1.5, 4.0, 8.0, 10.0, 4.0, NAN],
    "first_scheduled_s": [0.0, 1.5, 2.5, 5.0, NAN, 9.25],
    "first_token_s": [0.5, 2.0, 3.0, 6.0, NAN, 9.5],
    "cached_tokens": [10, 20, 60, 100, 0, 300],
    "queue_s": [0.0, 0.5, 0.5, 2.0, NAN, 0.25],
    "ttft_s": [0.5, 1.0, 1.0, 3.0, NAN, 0.5],
    "tpot_s": [0.1, 0.1, 0.2, 0.1, NAN, NAN],
    "e2e_s": [1.5, 3.0, 6.0, 7.0, NAN, NAN],
    "preemptions": [0, 0, 2, 1, 0, 0],
}
STEPS = {
    "replica": [0, 1, 0],
    "start_s": [0.0, 0.0, 4.0],
    "end_s": [4.0, 5.0, 10.0],
    "first_step_s": [4.0, 1.0, 1.0],
    "last_step_s": [4.0, 1.0, 1.0],
    "steps": [1, 5, 6],
    "prefill_tokens": [300, 0, 0],
    "decoding_requests": [0, 2, 3],
    "running_requests": [1, 2, 3],
    "waiting_requests": [1, 0, 0],
    "used_blocks": [10, 20, 30],
    "used_blocks_at_end": [10, 40, 50],
    "context_tokens": [0, 50, 90],
    "preempted_requests": [0, 1, 2],
}
# After 2 s three requests got a first token and 87 tokens came to requests that had one.
FIRST_TOKENS, GAPS = 3, 87


def columns(rows):
    return {name: np.array(values) for name, values in rows.items()}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "requests.csv").write_text("arrival_s,prompt_tokens,output_tokens\n0,1,1\n")
    return tmp_path


def summary_of(folder: Path, requests=REQUESTS, steps=STEPS, *, document=DOCUMENT, work=None, cut_off=False):
    simulation = Simulation.prepare(document, folder)
    gaps = CountedGaps(np.array([10**8]), np.array([GAPS]))
    pool = PoolFacts(
        name="",
        role="mixed",
        scenario=simulation.scenario,
        accelerator=simulation.accelerator,
        cost=simulation.cost,
        first_replica=0,
        total_blocks=simulation.total_blocks,
        block_tables=1,
        kv_bytes_per_token=131072,
        work=work or (decoded(), decoded()),
        ranges=(RangeCounter(simulation.cost),),
        peak_used_blocks=50,
    )
    facts = RunFacts(
        scenario=simulation.scenario,
        pools=(pool,),
        first_tokens=FIRST_TOKENS,
        notices=("a notice",),
        cut_off=cut_off,
        simulation_wall_s=0.0,
    )
    summary, _, _ = summarise(facts, columns(requests), columns(steps), [[gaps]], merged([gaps]), perf_counter())
    return summary


def decoded(steps=6, size=3, context=30):
    """The work of a replica that decoded some requests of equal context for some steps."""
    pool = DecodePool(16)
    for _ in range(size):
        pool.join(context)
    work = WorkCounter(())
    work.count_decodes(pool, steps)
    return work


FIGURES = [
    ("counts.arrived", 6),
    ("counts.finished", 4),
    ("counts.rejected", 1),
    ("counts.unfinished", 1),
    ("counts.rejected_by_reason.too long", 1),
    ("window.start_s", 2.0),
    ("window.end_s", 10.0),
    ("window.measured_s", 8.0),
    ("window.requests", 2),
    ("window.warmup_excluded", True),
    ("window.drain_excluded", False),
    ("window.arrivals_end_s", 9.0),
    # of those that arrived at 2 s or later, three got a first token and two the last
    ("metrics.ttft_s.count", 3),
    ("metrics.ttft_s.mean", 1.5),
    ("metrics.ttft_s.p50", 1.0),
    ("metrics.ttft_s.p90", 2.6),
    ("metrics.ttft_s.p999", 2.996),
    ("metrics.ttft_s.min", 0.5),
    ("metrics.ttft_s.max", 3.0),
    ("metrics.e2e_s.count", 2),
    ("metrics.tpot_s.mean", 0.15),
    ("metrics.e2e_s.mean", 6.5),
    ("metrics.queue_s.mean", (0.5 + 2 + 0.25) / 3),
    ("metrics.normalised_latency_s.mean", (6 / 30 + 7 / 40) / 2),
    # throughput: the three that ended after 2 s, over 8 s
    ("throughput.requests_per_s", 3 / 8),
    # all tokens that came after 2 s, and the prompts of the three whose first was among them
    ("throughput.output_tokens_per_s", 90 / 8),
    ("throughput.total_tokens_per_s", (90 + 300 + 400 + 600) / 8),
    # four arrived in the 7 s up to the last arrival, and two finished in them
    ("throughput.offered_requests_per_s", 4 / 7),
    ("throughput.served_requests_per_s", 2 / 7),
    ("throughput.keeps_up", True),
    # the fourth misses both limits; the third is exactly at both, the fifth is rejected and the sixth undecided
    ("throughput.goodput_requests_per_s", 1 / 7),
    ("throughput.slo_attainment", 1 / 3),
    # of those that arrived in the window: one kept 1 s, one and the rejected one missed it, the unfinished one kept it
    ("slo.ttft_s.p50.limit_s", 1.0),
    ("slo.ttft_s.p50.share_within", 2 / 4),
    ("slo.ttft_s.p50.met", True),
    # one kept 6 s, one and the rejected one missed it, the unfinished one is undecided
    ("slo.e2e_s.p90.share_within", 1 / 3),
    ("slo.e2e_s.p90.met", False),
    ("fairness", None),
    # one block of the 101 is the engine's
    ("kv.block_size_tokens", 16),
    ("kv.blocks_per_replica", 100),
    ("kv.capacity_tokens_per_replica", 1600),
    ("kv.bytes_per_token", 131_072),
    ("kv.peak_used_blocks", 50),
    ("kv.mean_used_share", (10 * 4 + 30 * 5 + 40 * 6) / (2 * 100 * 10)),
    ("kv.source", "given"),
    # of the third, fourth and sixth, which were first scheduled at 2 s or later
    ("kv.prefix_hit_rate", (60 + 100 + 300) / (300 + 400 + 600)),
    ("preemptions.total", 3),
    ("preemptions.requests", 2),
    ("utilisation.steps", 12),
    ("utilisation.prefill_tokens", 300),
    ("utilisation.decode_tokens", 2 * 5 + 3 * 6),
    ("utilisation.busy_share", 15 / 20),
    ("utilisation.mean_decode_batch", 28 / 12),
    ("utilisation.mean_running_requests", (1 * 4 + 2 * 5 + 3 * 6) / 10),
    # 1.5 + 3 + 6 + 7 s of finished ones and 1 s of the unfinished one are less than 32 s of running: none waits
    ("utilisation.mean_waiting_requests", 0.0),
    # four accelerators for 10 s, the warm-up included; of 27 tokens that steps tell of, 23 came in the 7 s of arrivals
    ("cost.usd_per_h", 12.0),
    ("cost.usd", 12.0 * 10 / 3600),
    ("cost.usd_per_million_output_tokens", 12.0 * 7 / 3600 / (90 * 23 / 27) * 1e6),
    ("cost.price_source", "the scenario"),
    ("run.simulated_s", 10.0),
    ("run.seed", 0),
    ("notices", ["a notice"]),
]


def figure(summary, key):
    found, rest = summary, key
    while rest:
        name = max((name for name in found if f"{rest}.".startswith(f"{name}.")), key=len)
        found, rest = found[name], rest[len(name) + 1 :]
    return found


@pytest.mark.parametrize(("key", "expected"), FIGURES, ids=[key for key, _ in FIGURES])
def test_a_figure(folder, key, expected):
    found = figure(summary_of(folder), key)
    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


def changed(rows, name, values):
    return {**rows, name: values}


@pytest.mark.parametrize(("slo", "goodput"), [({}, 2 / 7), ({"e2e_s": {"p99": 6.0}}, 1 / 7)])
def test_goodput_counts_by_every_stated_limit(folder, slo, goodput):
    rates = summary_of(folder, document={**DOCUMENT, "slo": slo})["throughput"]
    assert rates["goodput_requests_per_s"] == pytest.approx(goodput)


@pytest.mark.parametrize(("ttft_s", "good"), [(1.0, 1), (1.0 + 1e-9, 0)])
def test_a_limit_is_kept_by_what_equals_it(folder, ttft_s, good):
    requests = changed(REQUESTS, "ttft_s", [0.5, 1.0, ttft_s, 3.0, NAN, 0.5])
    rates = summary_of(folder, requests)["throughput"]
    assert rates["goodput_requests_per_s"] == pytest.approx(good / 7)


@pytest.mark.parametrize(
    ("cluster", "usd_per_h"),
    [
        ({"replicas": 1, "tensor_parallel": 1}, 3.0),
        ({"replicas": 1, "tensor_parallel": 2}, 6.0),
        ({"replicas": 3, "tensor_parallel": 1}, 9.0),
        ({"replicas": 3, "tensor_parallel": 4}, 36.0),
    ],
)
def test_every_accelerator_costs(folder, cluster, usd_per_h):
    document = {**DOCUMENT, "cluster": {**DOCUMENT["cluster"], **cluster}}
    cost = summary_of(folder, document=document)["cost"]
    assert cost["usd_per_h"] == pytest.approx(usd_per_h)
    assert cost["usd"] == pytest.approx(usd_per_h * 10 / 3600)


def test_the_list_price_is_used_where_none_is_stated(folder):
    document = {**DOCUMENT, "cluster": {"accelerator": "h100-sxm", "replicas": 2}}
    simulation = Simulation.prepare(document, folder)
    cost = summary_of(folder, document=document)["cost"]
    assert cost["usd_per_h"] == pytest.approx(2 * simulation.accelerator.price_usd_per_h)
    assert cost["price_source"] == f"list price of {simulation.accelerator.price_date}"


def test_waits_after_a_preemption_count_as_waiting(folder):
    """One request, scheduled at once, runs from 0 to 2 s and, preempted, again from 8 to 10 s: it waits 6 s of 10."""
    requests = {name: values[:1] for name, values in REQUESTS.items()}
    requests |= {"queue_s": [0.0], "ttft_s": [0.5], "end_s": [10.0], "e2e_s": [10.0], "preemptions": [1]}
    steps = {name: values[:2] for name, values in STEPS.items()}
    steps |= {"start_s": [0.0, 8.0], "end_s": [2.0, 10.0], "running_requests": [1, 1]}
    use = summary_of(folder, requests, steps)["utilisation"]
    assert use["mean_running_requests"] == pytest.approx(0.4)
    assert use["mean_waiting_requests"] == pytest.approx(0.6)


def prefilled(chunk, computed, size=0, context=0):
    """The work of a replica with a single step: a prompt chunk, and some decodes of equal context."""
    pool = DecodePool(16)
    for _ in range(size):
        pool.join(context)
    request = Request(0, 0, chunk + computed)
    request.computed_tokens = computed
    plan = BatchPlan(decoding=size)
    plan.add_chunk(request, chunk)
    work = WorkCounter(())
    work.count_step(plan, pool, size + 1)
    return work


def test_memory_traffic_counts_the_context_that_prefills_and_decodes_read(folder):
    """Of equal steps, one whose chunk has 1,000 tokens before it reads their keys and values too, and no more."""
    available = 3.35e12 * 10 * 2  # bytes per second of an h100-sxm, 10 s, two replicas
    kv_bytes_per_rank = 131_072 / 2

    def moved(work):
        return summary_of(folder, work=(work, WorkCounter(())))["utilisation"]["mbu"] * available

    first, later = moved(prefilled(256, 0)), moved(prefilled(256, 1000))
    assert later - first == pytest.approx(1000 * kv_bytes_per_rank, rel=1e-6)
    alone, beside = moved(prefilled(256, 0, 2, 500)), moved(prefilled(256, 0, 2, 700))
    assert beside - alone == pytest.approx(2 * 200 * kv_bytes_per_rank, rel=1e-6)
    short, long = moved(decoded(6, 3, 30)), moved(decoded(6, 3, 130))
    assert long - short == pytest.approx(6 * 3 * 100 * kv_bytes_per_rank, rel=1e-6)


def test_a_chunk_reads_its_own_keys_and_values_too(folder):
    """Beyond the weights, the traffic of a step is activations and the chunk's own KV, both in proportion to it."""
    simulation = Simulation.prepare(DOCUMENT, folder)
    work = prefilled(256, 0)
    counts = simulation.cost.split.counts(0, [(256, 0)], 1)
    terms = sum(term.bytes(counts[term.tokens]) for term in simulation.cost.token_terms)
    queries = 256 * 32 * (2 * 16 * 128) * 2  # 16 heads of 128 numbers are read, and as many results written
    assert work.moved_bytes(simulation.cost) == pytest.approx(terms + 256 * 131_072 / 2 + queries)


def test_arithmetic_counts_all_replicas_and_one_rank_of_each(folder):
    """A decode step of llama-3.1-8b takes about 2 operations a weight, of which each of two ranks does half."""
    one = summary_of(folder, work=(decoded(), WorkCounter(())))["utilisation"]["mfu"]
    both = summary_of(folder, work=(decoded(), decoded()))["utilisation"]["mfu"]
    assert both == pytest.approx(2 * one)
    weights_without_input_embedding = 8.03e9 - 128_256 * 4096
    flops = 2 * weights_without_input_embedding / 2 * 6 * 3
    assert one == pytest.approx(flops / (989.4e12 * 10 * 2), rel=0.01)


def test_the_host_takes_its_share_of_busy_time(folder):
    document = {**DOCUMENT, "host": {"step_s": 0.5, "per_request_s": 0.1}}
    use = summary_of(folder, document=document, work=(decoded(6, 3), decoded(5, 2)))["utilisation"]
    assert use["host_share_of_busy"] == pytest.approx((6 * 0.8 + 5 * 0.7) / 15)


@pytest.mark.parametrize(("blocks", "null_blocks", "usable"), [(101, 1, 100), (101, 0, 101), (50, 7, 43)])
def test_null_blocks_hold_no_tokens(folder, blocks, null_blocks, usable):
    memory = {"num_gpu_blocks": blocks, "null_blocks": null_blocks, "block_size_tokens": 16}
    kv = summary_of(folder, document={**DOCUMENT, "memory": memory})["kv"]
    assert (kv["blocks_per_replica"], kv["capacity_tokens_per_replica"]) == (usable, 16 * usable)
    assert kv["mean_used_share"] == pytest.approx(430 / (2 * usable * 10))


def test_a_null_block_of_computed_memory_is_taken_off_too(folder):
    def blocks(null_blocks):
        return Simulation.prepare({**DOCUMENT, "memory": {"null_blocks": null_blocks}}, folder).total_blocks

    assert blocks(0) - blocks(5) == 5


def test_a_run_that_was_cut_off_says_so(folder):
    whole = summary_of(folder)["window"]
    assert "its drain included" in whole["definition"]
    cut = summary_of(folder, cut_off=True)["window"]
    assert cut["drain_excluded"] is True
    assert "drain included" not in cut["definition"]
    assert "cut off" in cut["definition"]


def test_a_stated_end_is_the_end(folder):
    document = {**DOCUMENT, "measurement": {"warmup_s": 2.0, "end_s": 12.0}}
    summary = summary_of(folder, document=document)
    assert (summary["window"]["end_s"], summary["run"]["simulated_s"]) == (12.0, 12.0)
    assert summary["throughput"]["requests_per_s"] == pytest.approx(3 / 10)
    assert summary["utilisation"]["busy_share"] == pytest.approx(15 / 24)


def test_nothing_at_all_leaves_nulls(folder):
    nothing = {name: np.array(values)[:0] for name, values in REQUESTS.items()}
    steps = {name: np.array(values)[:0] for name, values in STEPS.items()}
    document = {**DOCUMENT, "measurement": {}}
    summary = summary_of(folder, nothing, steps, document=document, work=(WorkCounter(()), WorkCounter(())))
    assert summary["counts"]["arrived"] == 0
    assert {summary["throughput"][key] for key in summary["throughput"]} == {None}
    use = summary["utilisation"]
    assert (use["steps"], use["busy_share"], use["mfu"], use["mbu"], use["mean_waiting_requests"]) == (0, *[None] * 4)
    assert summary["kv"]["mean_used_share"] is None
    assert summary["cost"]["usd_per_million_output_tokens"] is None
    assert {(limit["share_within"], limit["met"]) for limit in summary["slo"].values()} == {(None, None)}
