import pytest

from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.errors import InputError
from simcore.core.request import Request
from simcore.cost.assumptions import HostOverhead, RooflineEfficiency
from simcore.cost.breakdown import StepShape
from simcore.cost.calibrated import load_profile
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.roofline import Roofline
from simcore.cost.step_cost import StepCost
from simcore.hardware import load_accelerator
from simcore.memory.kv_bytes import KvFormat
from simcore.models import load_model

SHAPES = ("1x100", "64x2048", "512", "512@1024+300", "7x900+64@128", "3x5000+1")


DEFAULT_HOST = HostOverhead()


def cost_of(model, calibrated, ranks, host=DEFAULT_HOST):
    accelerator = load_accelerator("h100-sxm")
    roofline = Roofline.of(accelerator, RooflineEfficiency(), "bf16")
    prices = KernelPrices(roofline, load_profile("h100-sxm", "vllm-0.19.0") if calibrated else None)
    return StepCost(load_model(model), prices, host, "bf16", KvFormat(), ranks)


def simulated_s(cost, shape):
    """What the simulator takes for the same batch."""
    pool = DecodePool(16, cost.window_tokens)
    for _ in range(shape.decodes):
        pool.join(shape.context_tokens)
    if not shape.chunks:
        return int(cost.decode_steps_ns(pool, 1)[0]) / 1e9
    plan = BatchPlan(decoding=shape.decodes)
    for tokens, computed in shape.chunks:
        plan.add_chunk(Request(0, 0, tokens + computed, computed_tokens=computed), tokens)
    return cost.step_ns(plan, pool, shape.requests) / 1e9


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize(
    ("model", "ranks"), [("llama-3.1-8b", 2), ("gpt-oss-20b", 1), ("deepseek-v2-lite", 1), ("qwen3-next-80b-a3b", 4)]
)
def test_operators_add_up_to_the_simulated_step(model, ranks, calibrated):
    cost = cost_of(model, calibrated, ranks)
    for text in SHAPES:
        shape = StepShape.parse(text)
        operators = cost.terms(shape)
        assert sum(operator.seconds for operator in operators) == pytest.approx(simulated_s(cost, shape), abs=2e-9)
        assert min(operator.seconds for operator in operators) > 0


def test_a_host_that_works_while_kernels_run_takes_nothing():
    host = HostOverhead(step_s=0.0, per_request_s=0.0, launch_s=4e-5, linear_prompt_s=3.4e-3)
    cost = cost_of("qwen3-next-80b-a3b", True, 4, host)
    for text in SHAPES:
        operators = {operator.name: operator.seconds for operator in cost.terms(StepShape.parse(text))}
        assert operators["host"] == 0.0


def test_work_by_hand():
    """A query, key and value projection of Llama-3.1-8B: 4096 x 6144, 32 times, over 10 tokens."""
    operators = {operator.name: operator for operator in cost_of("llama-3.1-8b", True, 1).terms(StepShape(10, 99))}
    projection = operators["qkv_projection"]
    assert projection.count == 32
    assert projection.flops == 32 * 2 * 10 * 4096 * 6144
    assert projection.bytes == 32 * (2 * 4096 * 6144 + 2 * 10 * (4096 + 6144))
    assert projection.source == "calibrated"
    assert projection.inside
    assert projection.errors.median > 0
    attention = operators["decode_attention"]
    assert attention.flops == 32 * 2 * 2 * 32 * 128 * 10 * 100
    assert operators["norm"].source == "roofline"
    assert operators["host"].source == "host"


@pytest.mark.parametrize("text", ["1x100", "64x2048+512@1024", "512", "1@7+2@9"])
def test_shapes_are_told_as_they_are_read(text):
    assert str(StepShape.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "0", "64x", "x2", "1x2+3x4", "5+0", "-1", "0x5", "5x0", "0x5+512", "5@1@2", "64x20O"]
)
def test_other_texts_are_refused(text):
    with pytest.raises(InputError, match=r"--shape is .*, expected"):
        StepShape.parse(text)
