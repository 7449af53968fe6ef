"""What a caller from Python gets wrong is one sentence too; and what numpy calls a number is one."""

import numpy as np
import pytest

import servetwin

SMALL = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "l4"},
    "workload": {
        "requests": 20,
        "arrivals": {"name": "poisson", "rate_per_s": 20.0},
        "prompt_tokens": {"name": "uniform", "low": 20, "high": 90},
        "output_tokens": {"name": "fixed", "tokens": 10},
    },
}
NESTED: dict[str, object] = {}
NESTED["itself"] = NESTED


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: servetwin.simulate(None), "scenario is None, expected the path of a YAML file, or a mapping of"),
        (lambda: servetwin.simulate(5), "scenario is of type int, expected the path of a YAML file, or a mapping of"),
        (lambda: servetwin.simulate([SMALL]), "scenario is of type list, expected the path"),
        (lambda: servetwin.simulate(b"x.yaml"), "scenario is of type bytes, expected the path"),
        (lambda: servetwin.simulate("a\0b.yaml"), r"a\x00b.yaml: cannot be a path, as it holds"),
        (lambda: servetwin.simulate("x" * 5000), "cannot be read (File name too long)."),
        (lambda: servetwin.simulate({}), "model is missing, expected text"),
        (lambda: servetwin.simulate({1: 2}), "1 is an unknown field, expected one of adapters,"),
        (lambda: servetwin.simulate(SMALL, overrides="seed=3"), "overrides is of type str, expected a list of KEY="),
        (lambda: servetwin.simulate(SMALL, overrides=None), "overrides is None, expected a list of KEY=VALUE."),
        (lambda: servetwin.simulate(SMALL, overrides=[3]), "one of overrides is 3, expected KEY=VALUE."),
        (lambda: servetwin.simulate(SMALL, overrides=["a." * 1000 + "b=1"]), "expected a key of at most 20 levels."),
        (lambda: servetwin.simulate(SMALL, overrides=["seed=" + "[" * 30 + "]" * 30]), "--set seed is nested too"),
        (
            lambda: servetwin.simulate({**SMALL, "slo": NESTED}),
            "the scenario is nested too deeply, expected at most 20",
        ),
        (lambda: servetwin.simulate(SMALL, base_dir=None), "base_dir is None, expected a path."),
        (lambda: servetwin.simulate(SMALL, progress=3), "progress is of type int, expected a function."),
        (lambda: servetwin.simulate(SMALL, bands=None), "bands is None, expected a whole number."),
        (lambda: servetwin.simulate(SMALL, bands=2.5), "bands is 2.5, expected a whole number."),
        (lambda: servetwin.simulate(SMALL, bands=True), "bands is true, expected a whole number."),
        (lambda: servetwin.simulate(SMALL, bands=5), "bands is 5, expected 0 for no bands, or 9 to 10000 replays."),
        (lambda: servetwin.simulate({**SMALL, "model": None}), "model is empty, expected text"),
        (lambda: servetwin.simulate({**SMALL, "model": "a\0b"}), r"a\x00b: cannot be a path"),
        (lambda: servetwin.simulate({**SMALL, "model": "a/b\0"}), r"a/b\x00: cannot be a path"),
        (lambda: servetwin.simulate({**SMALL, "model": "x/" + "y" * 5000}), "cannot be read (File name too long)."),
        (lambda: servetwin.simulate({**SMALL, "model": "a\0.json"}), r"a\x00.json: cannot be a path"),
        (
            lambda: servetwin.simulate({**SMALL, "cluster": {"accelerator": "a\0.yaml"}}),
            r"a\x00.yaml: cannot be a path",
        ),
        (lambda: servetwin.simulate({**SMALL, "cluster": {"accelerator": "x/" + "y" * 5000}}), "File name too long"),
        (lambda: servetwin.simulate({**SMALL, "workload": {"trace": "a\0.csv"}}), "cannot be a path, as it holds"),
        (
            lambda: servetwin.simulate({**SMALL, "workload": {"trace": "\ud800.csv"}}),
            "workload.trace is '\\ud800.csv', expected",
        ),
        (lambda: servetwin.simulate({**SMALL, "workload": {"trace": "y" * 5000 + ".csv"}}), "File name too long"),
        (lambda: servetwin.save(None, "x"), "result is None, expected what simulate returned."),
        (lambda: servetwin.compare(None, {"seed": [1]}), "scenario is None, expected the path"),
        (lambda: servetwin.compare(SMALL, None), "vary is None, expected a mapping from keys to lists of values."),
        (lambda: servetwin.compare(SMALL, {1: [2, 3]}), "one of vary is 1, expected a key such as"),
        (lambda: servetwin.compare(SMALL, {"seed": 3}), "--vary is 'seed', expected a key other than seed"),
        (lambda: servetwin.compare(SMALL, {"x": "ab"}), "--vary x is 'ab', expected a list of values."),
        (lambda: servetwin.compare(SMALL, {"a." * 1000 + "b": [1, 2]}), "expected a key of at most 20 levels."),
        (lambda: servetwin.compare(SMALL, {"x": [1, 2]}, seeds=1.5), "seeds is 1.5, expected a whole number."),
        (lambda: servetwin.compare(SMALL, {"x": [1, 2]}, jobs="2"), "jobs is '2', expected a whole number."),
        (
            lambda: servetwin.compare(SMALL, {"x": [1, 2]}, metrics="ttft_s.p99"),
            "metrics is of type str, expected a list",
        ),
        (lambda: servetwin.compare(SMALL, {"x": [1, 2]}, baseline=3), "baseline is 3, expected the label of a variant"),
        (lambda: servetwin.compare(SMALL, {"x": [1, 2]}, out=3), "out is of type int, expected a path."),
        (lambda: servetwin.compare(SMALL, {"x": [1, 2]}, out="a\0b"), r"a\x00b: cannot be a path"),
    ],
)
def test_wrong_types_and_paths_are_told_in_one_sentence(call, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(servetwin.ServetwinError) as caught:
        call()
    assert said in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        (None, "folder is None, expected a path."),
        ("a\0b", r"a\x00b: cannot be a path"),
        ("y" * 300, "cannot be written (File name too long)."),
    ],
)
def test_folders_that_cannot_be_written(tmp_path, monkeypatch, folder, said):
    monkeypatch.chdir(tmp_path)
    result = servetwin.simulate(SMALL)
    with pytest.raises(servetwin.ServetwinError) as caught:
        servetwin.save(result, folder)
    assert said in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_numbers_of_numpy_are_numbers(tmp_path):
    plain = {
        **SMALL,
        "seed": 3,
        "workload": {**SMALL["workload"], "requests": 30},
        "scheduler": {"reserve_whole_prompt": False, "batching": {"max_running_requests": 4}},
        "slo": {"ttft_s": {"p99": 0.5}},
    }
    lengths = np.array([20, 90])
    numpys = {
        **SMALL,
        "seed": np.int64(3),
        "workload": {
            "requests": np.int32(30),
            "arrivals": {"name": np.str_("poisson"), "rate_per_s": np.float32(20.0)},
            "prompt_tokens": {"name": "uniform", "low": lengths[0], "high": lengths.max()},
            "output_tokens": {"name": "fixed", "tokens": np.uint8(10)},
        },
        "scheduler": {"reserve_whole_prompt": np.bool_(False), "batching": {"max_running_requests": np.int64(4)}},
        "slo": {"ttft_s": {"p99": np.float64(0.5)}},
    }
    expected, found = servetwin.simulate(plain), servetwin.simulate(numpys)
    assert {**found.summary, "run": None} == {**expected.summary, "run": None}
    saved = servetwin.save(found, tmp_path / "run")
    assert servetwin.simulate(saved / "scenario.yaml").scenario == expected.scenario


@pytest.mark.parametrize("wrong", [np.float64(20.5), np.bool_(True), np.array([1, 2])])
def test_wrong_numbers_of_numpy_are_refused(wrong):
    with pytest.raises(servetwin.ServetwinError, match=r"workload\.requests is .*, expected a whole number"):
        servetwin.simulate({**SMALL, "workload": {**SMALL["workload"], "requests": wrong}})


def test_a_comparison_takes_arrays():
    comparison = servetwin.compare(
        SMALL, {"workload.arrivals.rate_per_s": np.array([10.0, 20.0])}, seeds=np.int64(2), jobs=np.int64(1)
    )
    assert comparison.variants == ("rate_per_s=10.0", "rate_per_s=20.0")
