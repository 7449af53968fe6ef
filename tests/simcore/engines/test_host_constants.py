"""Constants of hosts stay within what they can physically be."""

import pytest

from fidelity.harness import EXPOSED_HOST, PROSE_TOKEN_S
from fidelity.setups import setups
from simcore.cost.assumptions import HOST_RANGES
from simcore.engines import load_engine

FITTED = ("sglang", "trtllm", "vllm-v1")


@pytest.mark.parametrize("engine", FITTED)
@pytest.mark.parametrize("name", HOST_RANGES)
def test_a_fitted_constant_is_one_that_its_name_can_stand_for(engine, name):
    low, high, _ = HOST_RANGES[name]
    assert low <= load_engine(engine).host.get(name, low) <= high


STATED = [{"step_s": setup.step_s} for setup in setups() if setup.step_s is not None]


@pytest.mark.parametrize("host", [EXPOSED_HOST, {"per_prompt_token_s": PROSE_TOKEN_S}, *STATED])
def test_hosts_of_other_setups_are_held_to_the_same_ranges(host):
    for name, value in host.items():
        low, high, _ = HOST_RANGES[name]
        assert low <= value <= high


def test_what_engines_share_is_one_value():
    hosts = [load_engine(engine).host for engine in FITTED]
    for name in ("per_request_s", "launch_s", "request_s", "per_prompt_token_s"):
        assert len({host[name] for host in hosts}) == 1
