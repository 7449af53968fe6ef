"""A model that does not fit is told what it needs and what would do; what is offered does fit."""

import re

import pytest

from simcore.core.errors import CapacityError
from simcore.hardware import load_accelerator
from simcore.memory.capacity import MemoryDemand
from simcore.memory.kv_bytes import KvFormat
from simcore.models import load_model


def demand(model, dtype="auto", utilization=0.9):
    spec = load_model(model)
    return MemoryDemand(spec, spec.dtype if dtype == "auto" else dtype, KvFormat(), 16, 8192, 256, utilization)


def refusal(model, accelerator, ranks, **settings):
    with pytest.raises(CapacityError) as caught:
        demand(model, **settings).require_fit(load_accelerator(accelerator), ranks)
    return str(caught.value)


@pytest.mark.parametrize(
    ("model", "accelerator", "ranks", "said"),
    [
        (
            "llama-3.1-70b",
            "h100-sxm",
            1,
            "llama-3.1-70b does not fit 1 h100-sxm: it needs 143.8 GB (141.1 GB for weights in bf16, 2.0 GB for "
            "activations) and may use 76.5 GB (90% of its memory); 2 h100-sxm (cluster.tensor_parallel: 2), 1 b200, "
            "1 gb200 or 1 mi300x would do.",
        ),
        ("llama-3.1-405b", "rtx-4090", 1, "4 b300, 4 gb300 or 8 b200 would do."),
        ("deepseek-v3", "l4", 1, "4 b200, 4 b300 or 4 gb200 would do."),
        ("llama-3.1-70b", "l4", 2, "each needs 72.9 GB"),
        ("llama-3.1-405b", "cpu-generic", 1, "4 b300, 4 gb300 or 8 b200 would do."),
        ("llama-3.1-405b", "h200-sxm", 4, "; 8 h200-sxm (cluster.tensor_parallel: 8), 4 b300 or 4 gb300 would do."),
    ],
)
def test_the_sentence(model, accelerator, ranks, said):
    assert said in refusal(model, accelerator, ranks)


def test_nothing_is_offered_where_nothing_would_do():
    assert refusal("llama-3.1-405b", "h100-sxm", 1, utilization=0.05).endswith("; no known accelerator has enough.")


@pytest.mark.parametrize("model", ["llama-2-13b", "llama-3.1-70b", "llama-3.1-405b", "deepseek-v3", "mixtral-8x7b"])
@pytest.mark.parametrize("accelerator", ["rtx-4090", "l4", "h100-sxm", "a100-sxm-40gb"])
def test_what_is_offered_fits(model, accelerator):
    asked = demand(model)
    if asked.budget(load_accelerator(accelerator), 1).blocks:
        asked.require_fit(load_accelerator(accelerator), 1)
        return
    offers = re.findall(
        r"(\d+) ([a-z0-9-]+)(?: \(cluster.tensor_parallel: \d+\))?(?=,| or | would)", refusal(model, accelerator, 1)
    )
    assert offers
    for ranks, name in offers:
        assert asked.budget(load_accelerator(name), int(ranks)).blocks > 0
