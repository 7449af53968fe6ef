"""Sequences of requests that ask for several outputs."""

from pathlib import Path

import numpy as np
import pytest

from simcore.core.errors import InputError
from simcore.scenario import parse_scenario
from simcore.workload import build_workload, has_contents, samples_per_request
from simcore.workload.in_memory import concatenate


def scenario(**workload):
    base = {
        "requests": 50,
        "arrivals": {"name": "poisson", "rate_per_s": 5},
        "prompt_tokens": {"name": "uniform", "low": 5, "high": 90},
        "output_tokens": {"name": "uniform", "low": 1, "high": 40},
    }
    return {"model": "smollm2-135m", "cluster": {"accelerator": "l4"}, "workload": base | workload}


def built(**workload):
    return build_workload(parse_scenario(scenario(**workload)).workload, 3, Path())


def sequences(**workload):
    return concatenate(list(built(**workload).batches()))


@pytest.mark.parametrize("prefix", [None, [{"name": "shared", "tokens": {"name": "fixed", "tokens": 30}, "among": 3}]])
def test_samples_share_a_prompt_and_nothing_else(prefix):
    alone, sampled = sequences(prefix=prefix), sequences(prefix=prefix, samples=3)
    assert samples_per_request(built(prefix=prefix, samples=3)) == 3
    assert has_contents(built(prefix=prefix, samples=3))
    assert len(sampled) == 150
    for place in range(3):
        assert np.array_equal(sampled.arrival_ns[place::3], alone.arrival_ns)
        assert np.array_equal(sampled.prompt_tokens[place::3], alone.prompt_tokens)
    # What a request says first stays; the other samples have lengths of the same distribution.
    assert np.array_equal(sampled.output_tokens[::3], alone.output_tokens)
    assert not np.array_equal(sampled.output_tokens[1::3], alone.output_tokens)
    assert (sampled.output_tokens >= 1).all()
    assert (sampled.output_tokens <= 40).all()
    contents = list(sampled.contents)
    for place in range(0, 150, 3):
        assert contents[place].prompt == contents[place + 1].prompt == contents[place + 2].prompt
    firsts, ends = sampled.contents.output_first, sampled.contents.output_first + sampled.output_tokens
    order = np.argsort(firsts)
    assert (ends[order][:-1] <= firsts[order][1:]).all()


def test_limits_hold_for_every_sample():
    limited = sequences(samples=4, max_output_tokens=20)
    assert limited.output_tokens.max() == 20


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ({"samples": 0}, "workload.samples is 0, expected"),
        (
            {"samples": 2, "arrivals": {"name": "closed-loop", "concurrency": 2}},
            "samples is 2, expected 1 with a closed loop, sessions, or lengths that belong together",
        ),
    ],
)
def test_what_cannot_be_sampled_is_refused(workload, said):
    with pytest.raises(InputError, match=said):
        built(**workload)


def test_streams_do_not_sample():
    streams = [scenario(samples=2)["workload"] | {"tenant": name} for name in "ab"]
    document = scenario() | {"workload": {"streams": streams}}
    with pytest.raises(InputError, match=r"workload.streams.0.samples is 2, expected 1 in each of several streams"):
        build_workload(parse_scenario(document).workload, 3, Path())
