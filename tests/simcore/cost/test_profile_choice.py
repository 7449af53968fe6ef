from importlib import resources
from pathlib import Path

import pytest

from simcore.build.simulation import Simulation
from simcore.core.errors import FileError, InputError
from simcore.cost.attention import attention_work
from simcore.cost.calibrated import Source, load_profile
from simcore.cost.model_operators import layer_operators
from simcore.cost.profile_choice import (
    COLLECTIVES,
    ELEMENTWISE,
    EXPERT_KINDS,
    LATENT_DECODES,
    LATENT_KINDS,
    LATENT_PROMPTS,
    chosen_profile,
    fallback_profile,
    needed_kinds,
)
from simcore.engines import load_engine
from simcore.memory.kv_bytes import KvFormat
from simcore.models import load_model

DENSE = needed_kinds(load_model("llama-3.1-8b"), 1)


def test_what_a_model_needs():
    assert needed_kinds(load_model("llama-3.1-8b"), 2) - DENSE == {"collective"}
    assert needed_kinds(load_model("mixtral-8x7b"), 1) - DENSE == {"moe"}


@pytest.mark.parametrize(
    ("accelerator", "ranks", "name"),
    [
        ("h200-sxm", 1, "h200-sxm/vllm-0.24.0"),
        ("rtx-pro-6000-blackwell", 1, "rtx-pro-6000-blackwell/vllm-0.24.0"),
        ("rtx-4090", 1, "rtx-4090/vllm-0.19.0"),
        ("rtx-4090", 2, "rtx-4090/vllm-0.19.0"),  # which has no collectives, like any other of the accelerator
        ("a10g", 1, None),
    ],
)
@pytest.mark.parametrize("model", ["llama-3.1-8b", "mixtral-8x7b"])  # no experts were measured on an RTX 4090
def test_auto_takes_the_newest_that_has_what_is_needed(model, accelerator, ranks, name):
    profile = chosen_profile("auto", accelerator, needed_kinds(load_model(model), ranks))
    assert (profile and profile.name) == name


def test_what_is_asked_for_is_taken():
    assert chosen_profile("roofline", "h200-sxm", DENSE) is None
    assert chosen_profile("auto", "h200-sxm", DENSE, shipped=False) is None
    chosen = chosen_profile("vllm-0.19.0", "rtx-pro-6000-blackwell", DENSE)
    assert chosen is not None
    assert chosen.version == load_profile("rtx-pro-6000-blackwell", "vllm-0.19.0").version


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"pricing\.profile.*seen from the scenario's folder\. Did .* 'vllm-0\.19\.0'"):
        chosen_profile("vllm-0.19", "h200-sxm", DENSE)
    with pytest.raises(InputError, match=r"pricing\.profile is '\./mine', expected one of auto, roofline"):
        chosen_profile("./mine", "h200-sxm", DENSE)
    with pytest.raises(FileError, match=r"profile\.yaml"):
        chosen_profile(str(tmp_path), "h200-sxm", DENSE)


@pytest.mark.parametrize(("accelerator", "shipped"), [("h100-sxm", True), ("my-card", False)])
def test_kernels_of_another_accelerator_are_refused(accelerator, shipped):
    folder = str(resources.files("hardware_profiles") / "rtx-4090" / "vllm-0.19.0")
    with pytest.raises(InputError, match=rf"expected a profile of {accelerator}, but it is one of rtx-4090"):
        chosen_profile(folder, accelerator, DENSE, shipped=shipped)


def test_auto_takes_the_kernels_of_the_engine_where_it_can():
    latent = needed_kinds(load_model("deepseek-v3"), 8)
    assert {"mla_context", "mla_generation", "moe", "collective"} < latent
    for engine, weights, name in (
        ("trtllm", "fp8-block", "trtllm-1.3.0rc20"),
        ("sglang", "fp8-block", "sglang-0.5.14"),
        ("vllm-v1", "fp8-block", "vllm-0.24.0"),
        ("vllm-v1", "nvfp4-experts", "vllm-0.24.0"),
        ("vllm-v1", "int4-experts", "vllm-0.24.0"),
        ("vllm-v1", "int8", "trtllm-1.3.0rc20"),
    ):
        profile = chosen_profile("auto", "b200", latent, engine=load_engine(engine).kernels, weights=weights)
        assert profile is not None
        assert profile.name == f"b200/{name}"
    stand_in = chosen_profile("auto", "l40s", DENSE, engine=load_engine("trtllm").kernels)
    assert stand_in is not None
    assert stand_in.name == "l40s/vllm-0.24.0"
    without_latent = chosen_profile("auto", "l40s", latent, engine=load_engine("sglang").kernels)
    assert without_latent is not None
    assert without_latent.name == "l40s/vllm-0.24.0"


@pytest.mark.parametrize(
    ("kinds", "accelerator", "borrower", "fallback"),
    [
        (LATENT_DECODES, "h200-sxm", "vllm-0.24.0", "sglang-0.5.14"),
        (LATENT_DECODES, "h200-sxm", "vllm-0.19.0", "sglang-0.5.14"),
        (LATENT_PROMPTS, "h200-sxm", "vllm-0.19.0", "vllm-0.24.0"),
        (LATENT_PROMPTS, "l40s", "vllm-0.24.0", None),
        (COLLECTIVES, "rtx-pro-6000-blackwell", "vllm-0.19.0", "vllm-0.24.0"),
        (COLLECTIVES, "rtx-4090", "vllm-0.19.0", None),
        (EXPERT_KINDS, "rtx-pro-6000-blackwell", "vllm-0.19.0", "vllm-0.24.0"),
        (EXPERT_KINDS, "rtx-4090", "vllm-0.19.0", None),
        (ELEMENTWISE, "rtx-pro-6000-blackwell", "vllm-0.24.0", "vllm-0.19.0"),
        (ELEMENTWISE, "l40s", "vllm-0.24.0", None),
    ],
)
def test_what_a_profile_lacks_another_of_the_accelerator_lends(kinds, accelerator, borrower, fallback):
    own = load_profile(accelerator, borrower)
    assert not set(own.provenance) >= kinds
    found = fallback_profile(kinds, own, accelerator)
    assert (None if found is None else found.name) == (None if fallback is None else f"{accelerator}/{fallback}")
    assert fallback_profile(kinds, own, accelerator, shipped=False) is None
    assert fallback_profile(kinds, None, accelerator) is None
    if found is not None:
        assert fallback_profile(kinds, found, accelerator) is None


def prices(model, accelerator, profile, ranks):
    document = {
        "model": model,
        "engine": "vllm-v1",
        "cluster": {"accelerator": accelerator, "tensor_parallel": ranks},
        "pricing": {"profile": profile},
        "workload": {
            "requests": 1,
            "arrivals": {"name": "constant", "rate_per_s": 1},
            "prompt_tokens": {"name": "fixed", "tokens": 1},
            "output_tokens": {"name": "fixed", "tokens": 1},
        },
    }
    return Simulation.prepare(document, Path()).cost.prices


def test_latent_attention_is_lent_to_models_that_have_it_alone():
    assert not LATENT_KINDS & prices("llama-3.1-8b", "h200-sxm", "vllm-0.24.0", 1).fallback_profiles.keys()
    found = prices("deepseek-v3", "h200-sxm", "vllm-0.24.0", 8).fallback_profiles
    assert {kind: found[kind].name for kind in LATENT_KINDS & found.keys()} == {
        "mla_generation": "h200-sxm/sglang-0.5.14"
    }
    found = prices("deepseek-v3", "h200-sxm", "vllm-0.19.0", 8).fallback_profiles
    assert {kind: found[kind].name for kind in LATENT_KINDS} == {
        "mla_context": "h200-sxm/vllm-0.24.0",
        "mla_generation": "h200-sxm/sglang-0.5.14",
    }


def test_prompts_and_decodes_of_latent_attention_have_lenders_of_their_own():
    found = prices("deepseek-v3", "h200-sxm", "vllm-0.24.0", 8)
    (work,) = attention_work(load_model("deepseek-v3"), KvFormat("bf16"), 8)
    priced = found.attention(work)
    own, fallback = (load_profile("h200-sxm", name) for name in ("vllm-0.24.0", "sglang-0.5.14"))
    assert priced.context.seconds(4096) == pytest.approx(own.mla_context("bf16", 16).seconds(4096))
    assert priced.context.seconds(4096) < 0.8 * fallback.mla_context("bf16", 16).seconds(4096)
    assert priced.generation.errors == fallback.mla_generation("bf16", 16).errors


def test_experts_are_lent_to_moe_models():
    device = "rtx-pro-6000-blackwell"
    assert "moe" not in prices("llama-3.1-8b", device, "vllm-0.19.0", 1).fallback_profiles
    found = prices("qwen3-30b-a3b", device, "vllm-0.19.0", 2)
    assert found.fallback_profiles["moe"].name == f"{device}/vllm-0.24.0"
    (experts,) = (one for one in layer_operators(load_model("qwen3-30b-a3b"), "bf16", 2) if one.name == "experts")
    price = found.operator(experts)
    assert price.source == Source.CALIBRATED
    own = found.fallback_profiles["moe"].moe(
        "bf16", 2048, 768, 8, 128, tensor_parallel=2, distribution="power_law_1.01"
    )
    assert price.seconds(64) == pytest.approx(own.seconds(64), rel=1e-9)
