from dataclasses import replace

import numpy as np
import pytest

from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.cost.assumptions import HostOverhead, RooflineEfficiency
from simcore.cost.calibrated import Source, load_profile
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.linear_attention import linear_attention_work
from simcore.cost.model_operators import layer_operators
from simcore.cost.price_shares import unmeasured
from simcore.cost.recompute import RecomputeCost
from simcore.cost.roofline import Roofline
from simcore.cost.split import Split
from simcore.cost.step_cost import StepCost
from simcore.cost.uncertainty import DrawnPrices, draws
from simcore.cost.work import WorkCounter
from simcore.engines import LaunchCounts
from simcore.hardware import load_accelerator
from simcore.memory.kv_bytes import KvFormat
from simcore.models import load_model
from tests.simcore.cost.step_parts import whole

NEXT, QWEN35 = load_model("qwen3-next-80b-a3b"), load_model("qwen3.5-397b-a17b")
NO_HOST = HostOverhead(step_s=0.0, per_request_s=0.0)


def prices(profile="sglang-0.5.14"):
    roofline = Roofline.of(load_accelerator("h200-sxm"), RooflineEfficiency(), "bf16")
    return KernelPrices(roofline, None if profile is None else load_profile("h200-sxm", profile))


def cost(spec=QWEN35, ranks=8, host=NO_HOST, found=None, split=None):
    return StepCost(spec, found or prices(), host, "fp8-block", KvFormat("fp8"), ranks, split=split)


def pool_of(contexts):
    pool = DecodePool(16, ())
    for tokens in contexts:
        pool.join(tokens)
    return pool


def chunk_plan(*chunks, decoding=0):
    plan = BatchPlan(decoding=decoding)
    for tokens, computed in chunks:
        plan.add_chunk(Request(0, 0, tokens + computed, computed_tokens=computed), tokens)
    return plan


def test_work_by_hand():
    """Of Qwen3.5-397B on eight ranks: 2 key and 8 value heads of 128, of which each state has 128 x 128 numbers."""
    (work,) = linear_attention_work(QWEN35, 8)
    assert (work.count, work.key_heads, work.value_heads) == (45, 2, 8)
    state = 8 * 128 * 128
    convolved = (2 * 2 + 8) * 128
    assert work.flops_per_token == 7 * state + 2 * 4 * convolved
    assert work.state_bytes == 4 * state + 3 * convolved * 2
    assert work.bytes(10, 3) == 10 * work.bytes_per_token + 3 * 2 * work.state_bytes
    assert linear_attention_work(load_model("llama-3.1-8b"), 1) == ()


def test_projections_are_those_of_the_checkpoint():
    def shapes(spec, ranks):
        return {
            (operator.name, operator.count, operator.shape.outputs, operator.shape.inputs)
            for operator in layer_operators(spec, "fp8-block", ranks)
            if "projection" in operator.name and operator.count not in (15, 12)
        }

    values = 64 * 128
    assert shapes(QWEN35, 8) == {
        ("linear_projection", 45, (2 * 16 * 128 + values) // 8, 4096),
        ("output_gate_projection", 45, values // 8, 4096),
        ("state_gate_projection", 90, 64 // 8, 4096),
        ("output_projection", 45, 4096, values // 8),
    }
    values = 32 * 128
    assert shapes(NEXT, 2) == {
        ("linear_projection", 36, (2 * 16 * 128 + 2 * values) // 2, 2048),
        ("state_gate_projection", 36, 2 * 32 // 2, 2048),
        ("output_projection", 36, 2048, values // 2),
    }


def test_queries_of_gated_attention_are_projected_with_their_gates():
    operators = {operator.name: operator for operator in layer_operators(QWEN35, "bf16", 2) if operator.count == 15}
    heads, width = 32 // 2, 256
    assert operators["qkv_projection"].shape.outputs == 2 * heads * width + 2 * width
    assert operators["output_gate"].bytes(1) == 3 * heads * width * 2
    assert "output_gate" not in {operator.name for operator in layer_operators(load_model("qwen3-32b"), "bf16", 2)}


def test_a_decode_takes_the_same_at_any_context():
    found = cost()
    measured = prices().profile.linear_attention(2, 8, 128, 128)
    assert found.linear_decodes_ns(64) == pytest.approx(45e9 * measured.decodes_seconds(64))
    assert found.linear_decodes_ns(0) == 0.0
    (linear,) = found.linear_attention
    assert (linear.source, linear.inside_decodes(64), linear.inside_decodes(5000)) == (Source.CALIBRATED, True, False)


def test_a_chunk_takes_the_same_whatever_stands_before_it():
    (linear,) = cost().linear_attention
    measured = prices().profile.linear_attention(2, 8, 128, 128)
    assert linear.chunks_ns([(512, 0), (512, 4000)]) == pytest.approx(45e9 * measured.chunks_seconds(2, 1024))
    assert linear.chunks_ns([]) == 0.0
    assert linear.inside([(512, 0)])
    assert not linear.inside([(10**6, 0)])


def test_steps_take_it_in():
    """Against the same model whose linear attention takes half as long again."""

    class Slower(KernelPrices):
        def linear_attention(self, work):
            return KernelPrices.linear_attention(self, work).scaled(1.5, 1.5)

    base = prices()
    slower = Slower(base.roofline, base.profile)
    plain, slow = cost(found=base), cost(found=slower)
    (linear,) = plain.linear_attention
    pool = pool_of([900] * 8)
    more = np.subtract(slow.decode_steps_ns(pool, 3), plain.decode_steps_ns(pool, 3))
    assert more == pytest.approx([0.5 * plain.linear_decodes_ns(8)] * 3, abs=2)
    plan = chunk_plan((1000, 0), (500, 200), decoding=8)
    more = slow.step_ns(plan, pool, 10) - plain.step_ns(plan, pool, 10)
    both = linear.chunks_ns([(1000, 0), (500, 200)]) + plain.linear_decodes_ns(8)
    assert more == pytest.approx(0.5 * both, abs=2)


def test_the_fullest_of_several_data_parallel_ranks_is_priced():
    (linear,) = cost(ranks=1, split=Split(1, 8, 8)).linear_attention
    assert linear.data_ranks == 8
    one = [(700, 0)]
    assert linear.chunks_ns(one * 8) == linear.chunks_ns(one)
    assert linear.chunks_ns(one * 9) > linear.chunks_ns(one)
    assert linear.decodes_ns(16) == linear.decodes_ns(15) > linear.decodes_ns(8)


def test_the_host_is_waited_for_where_there_are_prompts():
    host = replace(NO_HOST, linear_prompt_s=1e-3)
    found = cost(host=host)
    assert found.host_ns(whole(1000, 1, 1)) == pytest.approx(45e6)
    assert found.host_ns(whole(64, 64, 64)) == 0.0
    assert cost(load_model("qwen3-30b-a3b"), host=host, ranks=4).host_ns(whole(1000, 1, 1)) == 0.0
    launched = replace(NO_HOST, launch_s=1.0)
    linear_layers = cost(host=launched).host.launches - 45 * LaunchCounts().linear_attention_prompt
    assert linear_layers > 60 * 10


def test_what_was_not_measured_is_left_to_the_roofline():
    found = cost(found=prices(None))
    (linear,) = found.linear_attention
    assert linear.source == Source.ROOFLINE
    assert not linear.inside_decodes(1)
    bandwidth = load_accelerator("h200-sxm").memory_bandwidth_bytes_per_s
    moved = linear.work.bytes(256, 256)
    assert linear.decodes_ns(256) == pytest.approx(45e9 * moved / bandwidth / RooflineEfficiency().attention_memory)
    assert "linear attention of 2 key and 8 value heads" in unmeasured(found)
    assert not any("linear" in name for name in unmeasured(cost()))


def test_work_of_a_run_is_counted():
    found, counter = cost(), WorkCounter(())
    (linear,) = found.linear_attention
    pool = pool_of([900] * 8)
    counter.count_decodes(pool, 10)
    counter.count_step(chunk_plan((1000, 0), (500, 200), decoding=8), pool, 10)
    assert (counter.decode_tokens, counter.prefill_tokens) == (88, 1500)
    without = replace(linear.work, flops_per_token=0.0, bytes_per_token=0.0, state_bytes=0.0)
    flops, moved = counter.flops(found), counter.moved_bytes(found)
    found.linear_attention = (replace(linear, work=without),)
    assert flops - counter.flops(found) == pytest.approx(45 * linear.work.flops(1588))
    assert moved - counter.moved_bytes(found) == pytest.approx(45 * linear.work.bytes(1588, 90))


@pytest.mark.parametrize(
    ("accelerator", "profile"), [("l40s", "vllm-0.24.0"), ("rtx-pro-6000-blackwell", "vllm-0.24.0")]
)
def test_decodes_move_states_no_faster_than_memory_does(accelerator, profile):
    """Measured with the states of a single layer, of which 64 requests have 32 MiB on eight ranks, in the L2 cache."""
    device, own = load_accelerator(accelerator), load_profile(accelerator, profile)
    (work,) = linear_attention_work(QWEN35, 8)
    roofline = Roofline.of(device, RooflineEfficiency(), "bf16")
    price = KernelPrices(roofline, own).linear_attention(work)
    least_s = 64 * 2 * (8 * 128 * 128 * 4 + 3 * 1536 * 2) / device.memory_bandwidth_bytes_per_s
    assert own.linear_attention(2, 8, 128, 128).decodes_seconds(64) < 0.5 * least_s
    assert price.decodes_seconds(64) == pytest.approx(least_s)
    assert price.decodes_seconds(512) == own.linear_attention(2, 8, 128, 128).decodes_seconds(512) > 8 * least_s
    drawn = DrawnPrices.of(KernelPrices(roofline, own), draws(4, seed=1)[0]).linear_attention(work)
    assert drawn.decodes_seconds(64) >= price.decodes_seconds(64) * (1 - 1e-12)


def test_draws_scale_prompts_and_decodes_apart():
    (first, *_) = draws(4, seed=1)
    (work,) = linear_attention_work(QWEN35, 8)
    own, drawn = prices().linear_attention(work), DrawnPrices.of(prices(), first).linear_attention(work)
    context = drawn.chunks_seconds(1, 1000) / own.chunks_seconds(1, 1000)
    assert context == pytest.approx(drawn.chunks_seconds(3, 5000) / own.chunks_seconds(3, 5000))
    assert context != pytest.approx(drawn.decodes_seconds(9) / own.decodes_seconds(9), rel=1e-6)


def test_computing_again_grows_by_the_token():
    found = RecomputeCost(QWEN35)
    (work,) = linear_attention_work(QWEN35, 1)
    assert found.flops(0, 10) > 10 * 45 * work.flops_per_token
