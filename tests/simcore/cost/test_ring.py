from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.build.simulation import Simulation
from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.errors import InputError
from simcore.core.request import Request
from simcore.cost.breakdown import StepShape
from simcore.cost.ring import Ring


def ring(ranks, bytes_per_s, layers=2):
    return Ring(ranks, layers, SimpleNamespace(seconds=lambda size: size / bytes_per_s))


def simulation(context, model="llama-3.1-8b", **changes):
    document = {
        "model": model,
        "cluster": {"accelerator": "h100-sxm", "context_parallel": context} | changes,
        "pricing": {"profile": "auto"},
        "workload": {
            "requests": 30,
            "arrivals": {"name": "poisson", "rate_per_s": 5},
            "prompt_tokens": {"name": "uniform", "low": 1000, "high": 30000},
            "output_tokens": {"name": "uniform", "low": 5, "high": 60},
        },
        "scheduler": {"batching": {"max_batched_tokens": 32768}},
    }
    return Simulation.prepare(document, Path())


def chunk_ns(cost, tokens, computed=0):
    plan = BatchPlan()
    plan.add_chunk(Request(0, 0, tokens + computed, computed_tokens=computed), tokens)
    return cost.step_ns(plan, DecodePool(16), 1)


def test_a_round_takes_the_longer_of_computing_and_sending():
    """16 us of attention over 4 ranks: 1 us in each of 4 rounds; a part of 1000 bytes in each of 2 layers."""
    assert ring(4, 1e10).rounds_ns(16e3, 1000) == pytest.approx(4 * 1e3)
    assert ring(4, 1e9).rounds_ns(16e3, 1000) == pytest.approx(4 * 2e3)
    assert ring(4, 1e9).part_bytes([(600, 400), (1000, 0)], None, 4096) == 2000 * 4096 / 4


@given(ranks=st.integers(1, 64), alone_ns=st.floats(1, 1e12), part=st.floats(0, 1e9))
def test_no_ring_beats_an_even_share(ranks, alone_ns, part):
    assert ring(ranks, 1e11).rounds_ns(alone_ns, part) >= alone_ns / ranks * (1 - 1e-12)


def test_long_prompts_gain_and_short_ones_do_not():
    one, four = simulation(1).cost, simulation(4).cost
    assert 3 < chunk_ns(one, 32768) / chunk_ns(four, 32768) < 4
    assert chunk_ns(one, 256) / chunk_ns(four, 256) < 1.5


def test_the_terms_add_up():
    run = simulation(4)
    times = {time.name: time.seconds for time in run.cost.terms(StepShape(8, 2000, ((16000, 0),)))}
    assert {"ring_attention", "context_merge", "decode_attention"} <= set(times)
    pool, plan = DecodePool(16), BatchPlan(8)
    for _ in range(8):
        pool.join(2000)
    plan.add_chunk(Request(0, 0, 16000), 16000)
    assert sum(times.values()) == pytest.approx(run.cost.step_ns(plan, pool, 9) / 1e9, rel=1e-6)


def test_decodes_read_a_part_of_every_context_and_memory_adds_up():
    one, four = simulation(1), simulation(4)
    read = 64 * 4000
    alone, parted = (run.cost.compiled_attention[0].decodes_ns(64, read, False) for run in (one, four))
    assert parted == pytest.approx(one.cost.compiled_attention[0].decodes_ns(64, read // 4, False), rel=0.02)
    assert parted < alone
    # and a little more, since a rank needs room for the activations of its own part of a step alone
    assert 4 * one.memory.request_blocks <= four.memory.request_blocks <= 4.2 * one.memory.request_blocks


def test_jumping_over_steps_equals_taking_them():
    run = simulation(4)
    jumping, stepping = run.run(check=True), run.run(fast_forward=False, check=True)
    assert (jumping.requests["end_s"] == stepping.requests["end_s"]).all()
    assert jumping.summary["cost"]["usd_per_h"] == pytest.approx(4 * simulation(1).run().summary["cost"]["usd_per_h"])


def test_other_splits_beside_are_refused():
    with pytest.raises(InputError, match=r"context_parallel is 2, expected 1 beside cluster\.pipeline_parallel"):
        simulation(2, pipeline_parallel=2)
