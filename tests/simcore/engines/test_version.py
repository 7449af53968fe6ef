"""An engine's version picks its host and its limits; one that is not known says which stands for it."""

from pathlib import Path

import pytest

from simcore.build.simulation import Simulation
from simcore.core.errors import InputError, UnknownNameError
from simcore.engines import load_engine, version_notices
from simcore.engines.version import number_of


def run(engine, accelerator="h100-sxm", **sections):
    document = {
        "model": "llama-3.1-8b",
        "engine": engine,
        "cluster": {"accelerator": accelerator},
        "workload": {
            "requests": 1,
            "arrivals": {"name": "at-once"},
            "prompt_tokens": {"name": "fixed", "tokens": 10},
            "output_tokens": {"name": "fixed", "tokens": 2},
        },
    }
    return Simulation.prepare(document | sections, Path())


@pytest.mark.parametrize(("version", "ahead"), [("0.12", False), ("0.13.2", False), ("0.14.0", True), ("0.24", True)])
def test_a_version_picks_the_host(version, ahead):
    host = run(f"vllm@{version}").scenario.host
    assert host.async_scheduling is ahead
    assert (host.step_s > 1e-3) is not ahead
    assert host.launch_s == load_engine("vllm-v1").host["launch_s"]


@pytest.mark.parametrize(
    ("accelerator", "tokens", "requests"),
    [("h100-sxm", 8192, 1024), ("b200", 8192, 1024), ("a100-sxm-80gb", 2048, 256), ("l4", 2048, 256)],
)
def test_limits_follow_the_accelerator(accelerator, tokens, requests):
    batching = run("vllm@0.12", accelerator).scenario.scheduler.batching
    assert (batching["max_batched_tokens"], batching["max_running_requests"]) == (tokens, requests)
    stated = {"scheduler": {"batching": {"max_running_requests": 7}}}
    batching = run("vllm@0.12", accelerator, **stated).scenario.scheduler.batching
    assert (batching["max_batched_tokens"], batching["max_running_requests"]) == (tokens, 7)


def test_a_preset_without_a_version_is_as_it_was():
    assert load_engine("vllm") == load_engine("vllm-v1")
    assert run("vllm-v1").scenario.scheduler.batching["max_running_requests"] == 256


@pytest.mark.parametrize(
    ("engine", "accelerator", "stated", "told"),
    [
        ("vllm-v1", "a100-sxm-80gb", {}, True),
        ("vllm", "l4", {}, True),
        ("vllm-v1", "h100-sxm", {}, False),
        ("vllm@0.24", "l4", {}, False),
        ("vllm-v1", "l4", {"scheduler": {"batching": {"max_batched_tokens": 2048}}}, False),
        ("sglang", "l4", {}, False),
    ],
)
def test_limits_that_do_not_follow_the_accelerator_are_told(engine, accelerator, stated, told):
    notices = run(engine, accelerator, **stated).run().summary["notices"]
    sentence = f"A step has up to 8,192 tokens, as by {engine} on every accelerator; on {accelerator} the engine itself"
    assert any(sentence in notice and "takes 2,048 by default" in notice for notice in notices) is told


@pytest.mark.parametrize(("engine", "stand_in"), [("vllm@0.30", "0.24"), ("vllm@0.5", "0.8"), ("trtllm@2.0rc1", "1.3")])
def test_an_unknown_version_says_which_stands_for_it(engine, stand_in):
    (notice,) = version_notices(engine)
    assert notice.endswith(f"{stand_in} stands for it.")
    assert notice in run(engine).run().summary["notices"]


def test_known_versions_say_nothing():
    assert version_notices("vllm@0.24.1") == version_notices("sglang@0.5.9") == version_notices("orca") == ()


def test_what_is_no_version_is_refused():
    with pytest.raises(InputError, match=r"engine is 'vllm@new', expected a version after vllm@"):
        load_engine("vllm@new")
    with pytest.raises(InputError, match="expected orca without a version"):
        load_engine("orca@1")
    with pytest.raises(UnknownNameError, match="vlm"):
        load_engine("vlm@0.12")


def test_versions_are_compared_by_their_release():
    assert number_of("1.2.0rc6.post2") == (1, 2, 0)
    assert number_of("0.9") < number_of("0.12.1") < number_of("0.14")
