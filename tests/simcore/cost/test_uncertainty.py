from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from simcore.build.simulation import Simulation
from simcore.cost.assumptions import HOST_SPREAD, ROUTING, ROUTINGS, STEP_ERROR, HostOverhead, RooflineEfficiency
from simcore.cost.calibrated.errors import LEVELS
from simcore.cost.calibrated.profile import load_profile
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.model_operators import layer_operators
from simcore.cost.step_cost import StepCost
from simcore.cost.term import Counted
from simcore.cost.uncertainty import (
    KINDS,
    DrawnPrices,
    drawn_efficiency,
    drawn_host,
    drawn_routing,
    draws,
    price_factor,
    step_factor,
)
from simcore.memory.kv_bytes import KvFormat
from simcore.models import load_model
from tests.simcore.cost.step_parts import layers_ns

QUANTILES = (-0.3, -0.2, -0.05, 0.0, 0.04, 0.1, 0.2)
NEUTRAL = dict.fromkeys(KINDS, 0.5)


def priced(accelerator, model, ranks=1):
    document = {
        "model": model,
        "engine": "vllm-v1",
        "cluster": {"accelerator": accelerator, "tensor_parallel": ranks},
        "pricing": {"profile": "auto"},
        "workload": {
            "requests": 1,
            "arrivals": {"name": "constant", "rate_per_s": 1},
            "prompt_tokens": {"name": "fixed", "tokens": 1},
            "output_tokens": {"name": "fixed", "tokens": 1},
        },
    }
    return Simulation.prepare(document, Path())


@pytest.fixture(
    scope="module",
    params=[("h100-sxm", "llama-3.1-8b", 1), ("h200-sxm", "gpt-oss-120b", 2), ("rtx-4090", "llama-3.1-8b", 1)],
)
def simulation(request):
    return priced(*request.param)


def cost_of(simulation, prices):
    return StepCost(
        simulation.spec, prices, HostOverhead(), "bf16", KvFormat(), simulation.scenario.cluster.tensor_parallel
    )


def test_draws_are_the_same_for_a_seed_and_spread_evenly():
    found = draws(20, 7)
    assert found == draws(20, 7) != draws(20, 8)
    for kind in KINDS:
        assert sorted(int(draw[kind] * 20) for draw in found) == list(range(20))
    assert len({tuple(draw.values()) for draw in found}) == 20


@given(st.floats(1e-6, 1 - 1e-6), st.floats(1e-6, 1 - 1e-6))
def test_a_price_said_to_be_too_dear_is_lowered(one, other):
    low, high = sorted((one, other))
    assert price_factor(QUANTILES, low) >= price_factor(QUANTILES, high) > 0


def test_factors_undo_the_stated_quantiles():
    for level, error in zip(LEVELS, QUANTILES, strict=True):
        assert price_factor(QUANTILES, level) * np.exp(error) == pytest.approx(1.0)
    # Beyond the stated levels it goes on at the slope of the last two, along the normal deviate.
    assert price_factor(QUANTILES, 0.01) > price_factor(QUANTILES, 0.05) > 1 > price_factor(QUANTILES, 0.99)


def test_host_constants_vary_as_stated():
    host = HostOverhead(launch_s=1e-5, request_s=1e-3, per_prompt_token_s=1e-6)
    same = drawn_host(host, NEUTRAL)
    assert same.step_s == pytest.approx(host.step_s)
    dear = drawn_host(host, NEUTRAL | {"host_step": 0.9})
    assert dear.step_s == pytest.approx(HOST_SPREAD * host.step_s)
    assert dear.launch_s == pytest.approx(HOST_SPREAD * host.launch_s)
    assert (dear.request_s, dear.max_cudagraph_tokens) == (pytest.approx(host.request_s), host.max_cudagraph_tokens)
    slow = drawn_host(host, NEUTRAL | {"host_request": 0.1})
    assert slow.request_s == pytest.approx(host.request_s / HOST_SPREAD)
    assert slow.per_prompt_token_s == pytest.approx(host.per_prompt_token_s / HOST_SPREAD)


def test_a_dearer_roofline_is_less_efficient_all_over():
    dear = drawn_efficiency(RooflineEfficiency(), dict.fromkeys(KINDS, 0.05))
    cheap = drawn_efficiency(RooflineEfficiency(), dict.fromkeys(KINDS, 0.95))
    for name in ("matmul_compute", "matmul_memory", "attention_compute", "attention_memory", "interconnect"):
        assert getattr(dear, name) < getattr(RooflineEfficiency(), name) < getattr(cheap, name)
    for name in ("kernel_floor_s", "collective_floor_s"):
        assert getattr(dear, name) > getattr(RooflineEfficiency(), name) > getattr(cheap, name)


@settings(deadline=None, max_examples=15)
@given(level=st.floats(0.01, 0.99), tokens=st.integers(1, 4096), computed=st.integers(0, 4096))
def test_calibrated_kernels_are_scaled_as_a_whole(simulation, level, tokens, computed):
    prices = simulation.cost.prices
    plain = cost_of(simulation, prices)
    # The roofline stays, so that what is compared is calibrated kernels alone.
    drawn = cost_of(
        simulation,
        DrawnPrices(prices.roofline, prices.profile, draw=dict.fromkeys(KINDS, level) | {"step": 0.5}),
    )
    plain_prices, drawn_prices = (
        [term.price for term in cost.token_terms if term.tokens is not Counted.ROWS] for cost in (plain, drawn)
    )
    for known, ours in zip(plain_prices, drawn_prices, strict=True):
        errors = known.errors_at(tokens)
        factor = 1.0 if errors is None else price_factor(errors.quantiles, level)
        assert ours.seconds(tokens) == pytest.approx(factor * known.seconds(tokens))
        assert (ours.source, ours.inside(tokens)) == (known.source, known.inside(tokens))
    for known, ours in zip(plain.compiled_attention, drawn.compiled_attention, strict=True):
        context, generation = known.calibrated.context, known.calibrated.generation
        if context is not None:
            factor = price_factor(context.errors.quantiles, level)
            chunks = [(tokens, computed), (tokens, 0)]
            assert ours.chunks_ns(chunks, False) == pytest.approx(factor * known.chunks_ns(chunks, False))
        if generation is not None:
            factor = price_factor(generation.errors.quantiles, level)
            expected = factor * known.decodes_ns(8, 8 * (computed + 1), False)
            assert ours.decodes_ns(8, 8 * (computed + 1), False) == pytest.approx(expected)


def test_routing_is_drawn_from_what_was_measured():
    skewed = load_profile("a100-sxm-80gb", "vllm-0.14.0")
    every = load_profile("h200-sxm", "vllm-0.24.0")
    levels = [{"routing": (place + 0.5) / 12} for place in range(12)]
    assert [drawn_routing(every, draw) for draw in levels] == [routing for routing in ROUTINGS for _ in range(4)]
    assert {drawn_routing(skewed, draw) for draw in levels} == set(ROUTINGS) - {"balanced"}
    assert {drawn_routing(None, draw) for draw in levels} == {ROUTING}


def test_drawn_routing_prices_experts():
    prices = priced("h200-sxm", "gpt-oss-120b", 2).cost.prices
    experts = next(
        operator for operator in layer_operators(load_model("gpt-oss-120b"), "mxfp4", 2) if operator.experts > 1
    )
    seconds = {
        routing: DrawnPrices.of(prices, NEUTRAL | {"routing": (place + 0.5) / 3}).operator(experts).seconds(32)
        for place, routing in enumerate(ROUTINGS)
    }
    assert len(set(seconds.values())) == 3
    assert seconds["balanced"] > seconds[ROUTING]


def test_a_whole_step_is_off_as_stated(simulation):
    host, draw = HostOverhead(launch_s=1e-5), NEUTRAL | {"step": 0.9}
    factor = np.exp(STEP_ERROR * ndtri(0.9))
    assert step_factor(draw) == pytest.approx(factor)
    assert drawn_host(host, draw).launch_s == pytest.approx(factor * drawn_host(host, NEUTRAL).launch_s)
    assert drawn_host(host, draw).request_s == drawn_host(host, NEUTRAL).request_s
    known, dearer = (cost_of(simulation, DrawnPrices.of(simulation.cost.prices, of)) for of in (NEUTRAL, draw))
    for tokens in (300, 20_000):  # the second beyond what was measured
        assert layers_ns(dearer, tokens) == pytest.approx(factor * layers_ns(known, tokens))
    for ours, theirs in zip(dearer.compiled_attention, known.compiled_attention, strict=True):
        assert ours.decodes_ns(3, 900, False) == pytest.approx(factor * theirs.decodes_ns(3, 900, False))
        assert ours.chunks_ns([(700, 0)], False) == pytest.approx(factor * theirs.chunks_ns([(700, 0)], False))


def test_a_draw_leaves_the_prices_that_it_is_of_as_they_are(simulation):
    prices = simulation.cost.prices
    before = layers_ns(cost_of(simulation, prices), 64), simulation.cost.compiled_attention[0].decodes_ns(4, 400, False)
    drawn = cost_of(simulation, DrawnPrices.of(prices, dict.fromkeys(KINDS, 0.1)))
    assert layers_ns(drawn, 64) != before[0]
    assert drawn.compiled_attention[0].decodes_ns(4, 400, False) != before[1]
    after = layers_ns(cost_of(simulation, prices), 64), simulation.cost.compiled_attention[0].decodes_ns(4, 400, False)
    assert after == before


def test_by_roofline_alone_a_draw_is_a_roofline():
    prices = replace(priced("h100-sxm", "llama-3.1-8b").cost.prices, profile=None)
    assert isinstance(prices, KernelPrices)
    drawn = DrawnPrices.of(prices, dict.fromkeys(KINDS, 0.1))
    assert drawn.roofline.efficiency == drawn_efficiency(prices.roofline.efficiency, dict.fromkeys(KINDS, 0.1))
    assert drawn.roofline.matmul_flops_per_s == prices.roofline.matmul_flops_per_s


def test_measured_norms_are_off_by_a_level_of_their_own():
    found = priced("rtx-4090", "llama-3.1-8b")
    norm = next(operator for operator in layer_operators(found.spec, "bf16", 1) if operator.name == "norm")
    as_is = found.cost.prices.operator(norm).seconds(256)
    for kind, factor in (
        ("elementwise", price_factor(found.cost.prices.profile.errors["elementwise"]["norm"].quantiles, 0.9)),
        ("gemm", price_factor(found.cost.prices.profile.errors["elementwise"]["norm"].quantiles, 0.5)),
    ):
        drawn = DrawnPrices.of(found.cost.prices, NEUTRAL | {kind: 0.9}).operator(norm)
        assert drawn.seconds(256) == pytest.approx(as_is * factor)
