"""``servetwin hardware show`` and ``diff``."""

import pytest

from simcore.cost.calibrated import available_profiles


def test_ceilings_and_profiles_of_an_accelerator(command):
    ended = command("hardware", "show", "h100-sxm")
    assert ended.code == 0
    assert "bf16 989.4" in ended.out
    assert "vllm-0.19.0" in ended.out


def test_a_profile_in_full(command):
    ended = command("hardware", "show", "l40s/" + available_profiles("l40s")[0])
    assert ended.code == 0
    assert "generation_attention" in ended.out
    assert "Apache-2.0" in ended.out


def test_a_profile_is_no_distance_from_itself_and_some_from_another(command):
    one, other = (f"{name}/{available_profiles(name)[0]}" for name in ("rtx-4090", "l40s"))
    assert "Median over kernels: 0.0%" in command("hardware", "diff", one, one).out
    ended = command("hardware", "diff", one, other)
    assert ended.code == 0
    assert "second over first" in ended.out


@pytest.mark.parametrize("asked", [["show", "h100-sxm/vllm-0.19"], ["diff", "h100-sxm/vllm-0.19", "h100-sxm"]])
def test_a_name_that_is_none_is_told_with_the_nearest(command, asked):
    ended = command("hardware", *asked)
    assert ended.code == 2
    assert "Did you mean 'h100-sxm/vllm-0.19.0'?" in ended.err
