import shutil
from pathlib import Path

import pytest

import simcore
from simcore.build.simulation import Simulation
from simcore.core.errors import InputError, UnknownNameError
from simcore.engines import DEFAULT_ENGINE, FOLDER, engine_names, load_engine, preset
from simcore.models import load_model

DOCUMENT = {
    "model": "qwen3.5-397b-a17b",
    "cluster": {"accelerator": "b200", "tensor_parallel": 8},
    "workload": {
        "requests": 1,
        "arrivals": {"name": "constant", "rate_per_s": 1},
        "prompt_tokens": {"name": "fixed", "tokens": 100},
        "output_tokens": {"name": "fixed", "tokens": 3},
    },
}
MADE_UP = """\
# A made-up engine.
kernels:
  profile: trtllm
  fallback_profiles: [sglang, vllm]
  fuses_linear_attention_projections: true
  launches: {linear_attention_prompt: 7}
limits_per_data_parallel_rank: true
host: {step_s: 0.25, launch_s: 1.0e-5}
scheduler: {ordering: {name: sjf}, batching: {name: chunked-prefill, max_batched_tokens: 96}}
memory: {block_size_tokens: 8}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the presets, to add to."""
    for file in FOLDER.glob("*.yaml"):
        shutil.copy(file, tmp_path)
    monkeypatch.setattr(preset, "FOLDER", tmp_path)
    return tmp_path


def prepared(engine, **changes):
    return Simulation.prepare(DOCUMENT | {"engine": engine} | changes, Path())


def test_one_file_makes_an_engine(folder):
    (folder / "made-up.yaml").write_text(MADE_UP)
    assert "made-up" in engine_names()
    ours, other = prepared("made-up"), prepared("trtllm")
    assert ours.scenario.host.step_s == 0.25
    assert ours.scenario.scheduler.ordering["name"] == "sjf"
    assert ours.cost.prices.profile.name == other.cost.prices.profile.name == "b200/trtllm-1.3.0rc20"
    joined, apart = ({term.name: term for term in run.cost.token_terms} for run in (ours, other))
    assert "output_gate_projection" in apart.keys() - joined.keys()
    gemm = joined["linear_projection"].operator.shape
    assert gemm.outputs == (apart["linear_projection"].operator.shape.outputs + 64 * 128 // 8)
    launched = [run.cost.host.launches - sum(term.launches for term in run.cost.token_terms) for run in (ours, other)]
    assert launched[1] - launched[0] == 45 * 3
    assert ours.run().summary["counts"]["finished"] == 1


def test_limits_hold_for_each_rank_where_the_preset_says_so(folder):
    moe = {"model": "mixtral-8x7b", "cluster": {"accelerator": "b200", "data_parallel": 2, "expert_parallel": 2}}
    for each, budget in ((True, 192), (False, 96)):
        (folder / f"made-up-{budget}.yaml").write_text(MADE_UP.replace("rank: true", f"rank: {str(each).lower()}"))
        found = prepared(f"made-up-{budget}", **moe)
        assert found.scenario.scheduler.batching["max_batched_tokens"] == budget


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("profile: trtllm", "profil: trtllm", r"wrong\.yaml: kernels\.profil"),
        ("prompt: 7", "prompt: many", r"wrong\.yaml: kernels\.launches\.linear_attention_prompt is 'many'"),
        ("memory: {block_size_tokens: 8}", "", r"wrong\.yaml: memory is missing"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(folder, old, new, said):
    (folder / "wrong.yaml").write_text(MADE_UP.replace(old, new))
    with pytest.raises(InputError, match=said):
        load_engine("wrong")


def test_other_names_are_refused():
    with pytest.raises(UnknownNameError, match="sglang"):
        load_engine("sglnag")


@pytest.mark.parametrize("engine", engine_names())
def test_every_preset_makes_a_scenario(engine):
    assert load_engine(engine).kernels.fallback_profiles
    assert prepared(engine, model="llama-3.1-8b").spec == load_model("llama-3.1-8b")


def test_no_code_asks_for_a_preset_by_name():
    names = [f'"{name}"' for name in engine_names()]
    found = {
        (file.name, name)
        for file in Path(simcore.__file__).parent.rglob("*.py")
        for name in names
        if name in file.read_text(encoding="utf-8")
    }
    assert found == {("preset.py", f'"{DEFAULT_ENGINE}"')}
