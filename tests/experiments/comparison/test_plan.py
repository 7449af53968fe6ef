"""What a comparison consists of, and that everything wrong with it is found before anything runs."""

from pathlib import Path

import pytest

from experiments.comparison import plan_comparison
from experiments.comparison.fingerprint import Fingerprints
from simcore.build.simulation import Simulation
from simcore.core.errors import InputError, ServetwinError, UnknownNameError

LIMIT = "scheduler.batching.max_running_requests"
TRACE = "arrival_s,prompt_tokens,output_tokens\n0,10,20\n1,30,40\n"


def plan(document, vary, *arguments, base_dir=Path(), **options):
    return plan_comparison(document, base_dir, vary, *arguments, **options)


def test_every_variant_runs_with_the_same_seeds_from_the_scenarios_on(document):
    found = plan({**document, "seed": 7}, {LIMIT: [8, 4]}, 3)
    assert found.variants == ("max_running_requests=8", "max_running_requests=4")
    assert found.baseline == "max_running_requests=8"
    assert found.seeds == (7, 8, 9)
    assert [(run.variant, run.seed) for run in found.runs] == [
        (variant, seed) for seed in (7, 8, 9) for variant in found.variants
    ]
    for run in found.runs:
        assert run.document["seed"] == run.seed
        limit = run.document["scheduler"]["batching"]["max_running_requests"]
        assert run.variant == f"max_running_requests={limit}"
    assert len({run.name for run in found.runs}) == len({run.fingerprint for run in found.runs}) == 6


def test_several_keys_make_all_combinations(document):
    found = plan(document, {LIMIT: [8, 4], "cluster.replicas": [1, 2]}, 1)
    assert found.variants == (
        "max_running_requests=8, replicas=1",
        "max_running_requests=8, replicas=2",
        "max_running_requests=4, replicas=1",
        "max_running_requests=4, replicas=2",
    )
    assert found.runs[3].document["cluster"]["replicas"] == 2


def test_policies_are_called_by_their_names_and_parameters(document):
    small, large = ({"name": "chunked-prefill", "max_running_requests": limit} for limit in (4, 8))
    found = plan(document, {"scheduler.batching": [small, large, "chunked-prefill"]}, 1)
    assert found.variants == (
        "chunked-prefill(max_running_requests=4)",
        "chunked-prefill(max_running_requests=8)",
        "chunked-prefill",
    )
    assert [run.name for run in found.runs[:1]] == ["chunked-prefill-max_running_requests=4-seed0"]


def test_labels_that_would_share_a_folder_get_one_each(document, tmp_path):
    for name in ("a b.csv", "a-b.csv"):
        (tmp_path / name).write_text(TRACE)
    recorded = {**document, "workload": {"trace": "?"}}
    found = plan(recorded, {"workload.trace": ["a b.csv", "a-b.csv"]}, base_dir=tmp_path)
    assert [run.name for run in found.runs] == ["1-a-b.csv-seed0", "2-a-b.csv-seed0"]


def test_the_baseline_is_the_first_or_the_one_named(document):
    assert plan(document, {LIMIT: [8, 4]}, 1, baseline="max_running_requests=4").baseline == "max_running_requests=4"
    assert plan(document, {LIMIT: [8, 4]}, 1, baseline="4").baseline == "max_running_requests=4"
    with pytest.raises(UnknownNameError, match=r"--baseline is 'max_running_requests=5', expected one of"):
        plan(document, {LIMIT: [8, 4]}, 1, baseline="max_running_requests=5")


@pytest.mark.parametrize(
    ("vary", "options", "said"),
    [
        ({LIMIT: [8]}, {}, "--vary is a single variant, expected at least two variants"),
        ({}, {}, "--vary is missing, expected at least two variants"),
        ({LIMIT: []}, {}, f"--vary {LIMIT} is \\[\\], expected a list of values"),
        ({LIMIT: "8"}, {}, f"--vary {LIMIT} is '8', expected a list of values"),
        ({LIMIT: [8, 8]}, {}, "expected each value once, but 8 stands there twice"),
        ({"seed": [1, 2]}, {}, "--vary is 'seed', expected a key other than seed"),
        ({LIMIT: [8, {1, 2}]}, {}, "expected plain data, as a scenario file has it"),
        ({LIMIT: [8, 4]}, {"seeds": 0}, "--seeds is 0, expected a whole number of at least 1"),
        ({LIMIT: [8, 4]}, {"seeds": 10**17}, "--seeds is 100000000000000000, expected at most 10000"),
        ({LIMIT: [8, 4]}, {"metrics": ["ttft_s.p98"]}, "--metrics is 'ttft_s.p98', .* Did you mean 'ttft_s.p9"),
        ({LIMIT: [8, "many"]}, {}, f"{LIMIT} is 'many', expected a whole number"),
        ({"scheduler.ordering.name": ["fcfs", "fcfz"]}, {}, "scheduler.ordering.name is 'fcfz', expected one of"),
        ({"cluster.replica": [1, 2]}, {}, "cluster.replica is an unknown field"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(document, vary, options, said):
    with pytest.raises(InputError, match=said):
        plan(document, vary, **options)


def test_a_recorded_workload_runs_once_unless_seeds_are_asked_for(document, tmp_path):
    (tmp_path / "trace.csv").write_text(TRACE)
    recorded = {**document, "workload": {"trace": "trace.csv"}}
    found = plan(recorded, {LIMIT: [8, 4]}, base_dir=tmp_path)
    assert found.seeds == (0,)
    assert found.notices == (
        "The requests are the same whatever the seed, so every variant ran once; --seeds N draws those of a trace "
        "anew.",
    )
    with pytest.raises(InputError, match=r"workload.resample is true, expected a trace of at least 40 requests"):
        plan(recorded, {LIMIT: [8, 4]}, 2, base_dir=tmp_path)
    recorded["workload"]["resample"] = False
    with pytest.raises(InputError, match="--seeds is 2, expected 1, since the requests are the same whatever the seed"):
        plan(recorded, {LIMIT: [8, 4]}, 2, base_dir=tmp_path)


def test_several_seeds_draw_traces_anew_and_all_variants_get_the_same(document, tmp_path):
    rows = [f"{3 * place},{place + 1},5" for place in range(60)]
    (tmp_path / "trace.csv").write_text("\n".join(["arrival_s,prompt_tokens,output_tokens", *rows]))
    stream = {"trace": "trace.csv"}
    for workload in (stream, {"streams": [stream | {"tenant": "a"}, document["workload"] | {"tenant": "b"}]}):
        found = plan({**document, "workload": workload}, {LIMIT: [8, 4]}, 3, base_dir=tmp_path)
        prompts = {
            (run.variant, run.seed): next(
                iter(Simulation.prepare(run.document, Path()).workload.batches())
            ).prompt_tokens.tolist()
            for run in found.runs
        }
        assert len({tuple(prompts[found.baseline, seed]) for seed in found.seeds}) == 3
        for seed in found.seeds:
            assert len({tuple(prompts[variant, seed]) for variant in found.variants}) == 1


def test_so_does_a_synthetic_workload_in_which_nothing_is_random(document):
    fixed = {"name": "fixed", "tokens": 9}
    workload = {"requests": 5, "arrivals": {"name": "constant", "rate_per_s": 4}}
    document["workload"] = workload | {"prompt_tokens": fixed, "output_tokens": fixed}
    assert plan(document, {LIMIT: [8, 4]}).seeds == (0,)
    document["workload"]["output_tokens"] = {"name": "uniform", "low": 1, "high": 90}
    found = plan(document, {LIMIT: [8, 4]})
    assert (found.seeds, found.notices) == ((0, 1, 2, 3, 4, 5), ())


def test_times_between_the_requests_of_a_session_depend_on_the_seed_too(document):
    fixed = {"name": "fixed", "tokens": 9}
    session = {"name": "chat", "turns": {"name": "fixed", "tokens": 3}, "think_time_s": {"name": "fixed", "time_s": 1}}
    workload = {"requests": 5, "arrivals": {"name": "constant", "rate_per_s": 4}, "session": session}
    document["workload"] = workload | {"prompt_tokens": fixed, "output_tokens": fixed}
    assert plan(document, {LIMIT: [8, 4]}).seeds == (0,)
    session["think_time_s"] = {"name": "exponential", "mean_s": 1}
    assert plan(document, {LIMIT: [8, 4]}).seeds == (0, 1, 2, 3, 4, 5)


def test_the_fingerprint_is_of_the_scenario_and_the_files_that_it_names(document, tmp_path):
    def fingerprint(**changes):
        recorded = {**document, "workload": {"trace": "trace.csv"}, **changes}
        return Fingerprints().of(Simulation.prepare(recorded, tmp_path).scenario.document())

    (tmp_path / "trace.csv").write_text(TRACE)
    first = fingerprint()
    assert fingerprint() == first
    assert fingerprint(seed=1) != first
    (tmp_path / "trace.csv").write_text(TRACE.replace("40", "41"))
    assert fingerprint() != first


def test_an_error_of_a_later_seed_is_found_too(document):
    # At 1 request/s, no request arrives within 0.5 s for about six seeds in ten.
    document["workload"] |= {"duration_s": 0.5, "arrivals": {"name": "poisson", "rate_per_s": 1.0}}
    del document["workload"]["requests"]
    fitting = next(seed for seed in range(100) if prepares(document, seed))
    with pytest.raises(ServetwinError, match=r"workload.duration_s is 0.5, expected long enough"):
        plan({**document, "seed": fitting}, {LIMIT: [8, 4]}, 40)


def prepares(document, seed):
    try:
        Simulation.prepare({**document, "seed": seed}, Path())
    except ServetwinError:
        return False
    return True
