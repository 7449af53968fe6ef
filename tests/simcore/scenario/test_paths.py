"""Files that a scenario names are kept as absolute paths, names stay names."""

from simcore.scenario import parse_scenario
from simcore.scenario.paths import with_absolute_paths

BASE = {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm"}}
LENGTHS = {"name": "empirical", "file": "lengths.csv"}
SYNTHETIC = {"requests": 5, "arrivals": {"name": "poisson", "rate_per_s": 1}}


def resolved(folder, **sections):
    return with_absolute_paths(parse_scenario(BASE | {"workload": SYNTHETIC | {"lengths": LENGTHS}} | sections), folder)


def test_traces_and_length_files(tmp_path):
    assert resolved(tmp_path, workload={"trace": "a/b.csv"}).workload.trace == str(tmp_path / "a/b.csv")
    assert resolved(tmp_path).workload.lengths.file == str(tmp_path / "lengths.csv")
    assert resolved(tmp_path, workload={"trace": "/x/b.csv"}).workload.trace == "/x/b.csv"


def test_files_of_streams(tmp_path):
    streams = [{"trace": "b.csv"}, SYNTHETIC | {"lengths": LENGTHS}]
    trace, synthetic = resolved(tmp_path, workload={"streams": streams}).workload.streams
    assert trace.trace == str(tmp_path / "b.csv")
    assert synthetic.lengths.file == str(tmp_path / "lengths.csv")


def test_the_working_directory_is_made_explicit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resolved(tmp_path.relative_to(tmp_path), workload={"trace": "b.csv"}).workload.trace == str(
        tmp_path / "b.csv"
    )


def test_models_and_accelerators_beside_the_scenario(tmp_path):
    (tmp_path / "own-model").mkdir()
    (tmp_path / "own.yaml").touch()
    scenario = resolved(tmp_path, model="own-model", cluster={"accelerator": "own.yaml", "replicas": 3})
    assert scenario.model == str(tmp_path / "own-model")
    assert (scenario.cluster.accelerator, scenario.cluster.replicas) == (str(tmp_path / "own.yaml"), 3)


def test_kernel_profiles_beside_the_scenario(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "vllm-0.24.0").mkdir()
    for given in ("mine", "./mine"):
        assert resolved(tmp_path, pricing={"profile": given}).pricing.profile == str(tmp_path / "mine")
    for given in ("auto", "vllm-0.24.0", "./other", "/x/y"):
        assert resolved(tmp_path, pricing={"profile": given}).pricing.profile == given


def test_known_names_win_over_files_of_that_name(tmp_path):
    (tmp_path / "llama-3.1-8b").mkdir()
    (tmp_path / "h100-sxm").touch()
    scenario = resolved(tmp_path)
    assert (scenario.model, scenario.cluster.accelerator) == ("llama-3.1-8b", "h100-sxm")


def test_unknown_names_stay_as_they_are(tmp_path):
    assert resolved(tmp_path, model="lama").model == "lama"


def test_a_workload_without_files_is_left_alone(tmp_path):
    fixed = {"name": "fixed", "tokens": 5}
    workload = SYNTHETIC | {"prompt_tokens": fixed, "output_tokens": fixed}
    assert resolved(tmp_path, workload=workload).workload == parse_scenario(BASE | {"workload": workload}).workload
