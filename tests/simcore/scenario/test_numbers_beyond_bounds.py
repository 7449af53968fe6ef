"""No number of a scenario, however large, ends in anything but a run or one sentence."""

from pathlib import Path

import pytest

from simcore.build.simulation import Simulation
from simcore.core.errors import ServetwinError
from simcore.scenario import override, parse_scenario

SCENARIO = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "h100-sxm", "price_usd_per_h": 1.0},
    "memory": {"prefix_cache": {"expires_after_s": 9.0}, "retention": {"window_tokens": 64}},
    "measurement": {"end_s": 10.0},
    "scheduler": {"preemption": {"reserved_blocks": {0: 4}}},
    "slo": {"ttft_s": {"p99": 2.0}},
    "workload": {
        "requests": 3,
        "arrivals": {"name": "gamma", "rate_per_s": 50.0, "cv": 2.0},
        "prompt_tokens": {"name": "lognormal", "median": 60, "sigma": 0.5, "max": 90},
        "output_tokens": {"name": "uniform", "low": 3, "high": 9},
        "tenants": [{"name": "a", "share": 1.0, "timeout_s": 5.0, "max_output_tokens": 10}],
    },
}


def places(value, path=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from places(inner, (*path, place))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def replaced(document, path, value):
    key, *rest = path
    inner = replaced(document[key], rest, value) if rest else value
    if isinstance(document, list):
        return [*document[:key], inner, *document[key + 1 :]]
    return {**document, key: inner}


COMPLETE = parse_scenario(SCENARIO).document()


@pytest.mark.parametrize("path", list(places(COMPLETE)), ids=lambda path: ".".join(map(str, path)))
def test_a_number_beyond_all_bounds_is_refused_where_it_stands(path):
    field = ".".join(map(str, path))
    for value in (10**400, -(10**400), 10**5000):
        with pytest.raises(ServetwinError) as refused:
            Simulation.prepare(replaced(COMPLETE, path, value), Path())
        assert str(refused.value).startswith(f"{field} is a number beyond all bounds, expected at most")


def test_keys_beyond_all_bounds_are_refused():
    for key in (10**400, "9" * 5000):
        with pytest.raises(ServetwinError, match=r"scheduler\.preemption\.reserved_blocks"):
            parse_scenario(replaced(SCENARIO, ("scheduler", "preemption", "reserved_blocks"), {key: 4}))
        ordering = {"name": "edf", "ttft_s_by_priority": {key: 2.0}}
        with pytest.raises(ServetwinError, match=r"scheduler\.ordering\.ttft_s_by_priority"):
            parse_scenario(replaced(SCENARIO, ("scheduler",), {"ordering": ordering}))


@pytest.mark.parametrize("text", ["9" * 400, "-" + "9" * 400, "9" * 5000, "0x" + "f" * 5000, ".inf", "1e400"])
def test_they_are_refused_in_an_assignment_too(text):
    with pytest.raises(ServetwinError, match="seed is"):
        parse_scenario(override(SCENARIO, [f"seed={text}"]))
