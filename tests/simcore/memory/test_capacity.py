import json

import pytest

from simcore.core.errors import CapacityError
from simcore.hardware import load_accelerator
from simcore.memory.capacity import MemoryDemand
from simcore.memory.kv_bytes import KvFormat
from simcore.models import load_model


def demand(model, **changes):
    facts = {
        "weight_dtype": "bf16",
        "kv_format": KvFormat(),
        "block_size_tokens": 16,
        "max_batched_tokens": 8192,
        "max_running_requests": 256,
        "utilization": 0.9,
    }
    return MemoryDemand(load_model(model), **(facts | changes))


def test_an_rtx_4090_has_the_blocks_that_its_engine_logged(shared_data):
    """vLLM 0.19 logged 2,588 blocks; the estimate is 1.0% above, held to 3%."""
    meta = json.loads((shared_data / "measured/vllm-per-request/RTX4090_Llama-3.1-8B/meta.json").read_text())
    cache, engine = meta["kv_cache"], meta["engine_kwargs"]
    accelerator = load_accelerator("rtx-4090")
    assert accelerator.memory_bytes == meta["hardware"]["device_total_memory_bytes"]
    budget = demand(
        "llama-3.1-8b",
        block_size_tokens=cache["block_size"],
        max_batched_tokens=engine["max_num_batched_tokens"],
        max_running_requests=engine["max_num_seqs"],
        utilization=cache["gpu_memory_utilization"],
    ).budget(accelerator, engine["tensor_parallel_size"])
    assert budget.blocks == pytest.approx(cache["num_gpu_blocks"], rel=0.03)


def test_the_parts_of_a_budget_add_up():
    accelerator = load_accelerator("h100-sxm")
    budget = demand("llama-3.1-8b").budget(accelerator, 1)
    assert budget.block_bytes == 16 * 131_072
    assert budget.weight_bytes == 2 * 8_030_261_248
    parts = budget.weight_bytes + budget.activation_bytes + budget.overhead_bytes + budget.kv_bytes
    assert parts == int(0.9 * accelerator.memory_bytes)
    assert budget.blocks == budget.kv_bytes // budget.block_bytes


@pytest.mark.parametrize(
    ("changes", "direction"),
    [
        ({"utilization": 0.8}, -1),
        ({"max_batched_tokens": 32_768}, -1),
        ({"max_running_requests": 1024}, -1),
        ({"kv_format": KvFormat("fp8")}, 1),
        ({"weight_dtype": "fp8"}, 1),
    ],
)
def test_what_leaves_more_or_less_room(changes, direction):
    accelerator = load_accelerator("h100-sxm")
    usual, other = demand("llama-3.1-8b"), demand("llama-3.1-8b", **changes)
    assert (other.budget(accelerator, 1).blocks - usual.budget(accelerator, 1).blocks) * direction > 0


def test_ranks_share_weights_and_heads_but_not_a_latent():
    h100 = load_accelerator("h100-sxm")
    llama = demand("llama-3.1-70b")
    assert llama.budget(h100, 4).block_bytes * 4 == llama.budget(h100, 1).block_bytes
    assert llama.budget(h100, 16).block_bytes == llama.budget(h100, 8).block_bytes  # 8 heads of keys
    latent = demand("deepseek-v2-lite")
    assert latent.budget(h100, 4).block_bytes == latent.budget(h100, 1).block_bytes == 16 * 27 * 576 * 2
    whole, quarter = latent.budget(h100, 1).weight_bytes, latent.budget(h100, 4).weight_bytes
    down, router, norms = 27 * 576 * 2048, 26 * 64 * 2048, 55 * 2048 + 27 * 512  # held by every rank, in 16 bits
    assert quarter == pytest.approx((whole + 3 * 2 * (down + router + norms)) / 4, rel=1e-9)


def test_a_model_that_does_not_fit_says_what_would():
    big = demand("llama-3.1-70b")
    h100 = load_accelerator("h100-sxm")
    with pytest.raises(CapacityError, match=r"needs 14\d\.\d GB \(141\.1 GB for weights.*tensor_parallel: 2"):
        big.require_fit(h100, 1)
    assert big.budget(h100, 1).blocks == 0
    assert big.require_fit(h100, 2).blocks > 0


def test_the_stage_with_the_least_room_decides():
    h100 = load_accelerator("h100-sxm")
    asked = demand("llama-3.1-70b")
    budgets = asked.budgets(h100, 1, 3)
    # Of 80 layers the two left over go to the stages before the last.
    assert [budget.block_bytes // (16 * 4096) for budget in budgets] == [27, 27, 26]
    assert sum(budget.weight_bytes for budget in budgets) == demand("llama-3.1-70b").budget(h100, 1).weight_bytes
    assert asked.budget(h100, 1, 3).blocks == min(budget.blocks for budget in budgets)
    assert {budget.collective_bytes for budget in budgets} == {342 * 2**20}


def test_only_the_last_stage_samples():
    first, last = demand("llama-3.1-8b").budgets(load_accelerator("h100-sxm"), 1, 2)
    assert last.activation_bytes - first.activation_bytes == 256 * 128_256 * 10


def test_context_ranks_compute_a_part_of_every_prompt_and_all_decodes():
    h100 = load_accelerator("h100-sxm")
    one, two = (demand("llama-3.1-8b", context_ranks=ranks).budget(h100, 1) for ranks in (1, 2))
    fewer_tokens = 8192 - (256 + (8192 - 256) // 2)
    assert one.activation_bytes - two.activation_bytes == fewer_tokens * (2 * 4096 + 3 * 14_336) * 2


def test_data_parallel_ranks_share_the_tokens_of_experts_and_what_is_sampled():
    budget = demand("qwen3-235b-a22b", data_parallel_ranks=8, expert_ranks=8).budget(load_accelerator("h200-sxm"), 1)
    attention_width = 64 * 2 * 128  # more than 8 experts of 3 x 1536 for an eighth of the tokens
    assert budget.activation_bytes == 8192 * (2 * 4096 + attention_width) * 2 + 256 // 8 * 151_936 * 10


def test_layers_that_share_caches_leave_room_for_more_blocks():
    h100 = load_accelerator("h100-sxm")
    usual, halved = (demand("llama-3.1-8b", sharing_layers=sharing).budget(h100, 1) for sharing in (1, 2))
    assert (halved.block_bytes * 2, halved.kv_bytes) == (usual.block_bytes, usual.kv_bytes)


def test_a_hybrid_pool_has_smaller_blocks_in_the_same_memory():
    h100 = load_accelerator("h100-sxm")
    plain, hybrid = (demand("gpt-oss-20b", hybrid=hybrid).budget(h100, 1) for hybrid in (False, True))
    assert (hybrid.block_bytes * 2, hybrid.kv_bytes) == (plain.block_bytes, plain.kv_bytes)
