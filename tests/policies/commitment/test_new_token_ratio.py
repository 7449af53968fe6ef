from dataclasses import dataclass

import pytest

from policies.commitment.new_token_ratio import NewTokenRatio


@dataclass
class Running:
    max_output_tokens: int
    generated_tokens: int = 0
    ignores_eos: bool = False


def test_the_ratio_falls_by_steps_to_its_floor_and_rises_again():
    ratio = NewTokenRatio()
    assert ratio.share(Running(10)) == pytest.approx(0.7)
    ratio.decoded(1)
    assert ratio.ratio == pytest.approx(0.7 - 0.7 * 0.86 / 600)
    for _ in range(1000):
        ratio.decoded(1)
    assert ratio.ratio == pytest.approx(0.098)
    ratio.retracted([Running(100, 30), Running(99, 9)])
    assert ratio.ratio == pytest.approx((39 + 40) / 200)
    ratio.idle()
    assert ratio.ratio == pytest.approx(0.7)


def test_a_request_of_known_length_has_all_of_it_set_aside():
    assert NewTokenRatio(0.1).share(Running(10, ignores_eos=True)) == 1.0
