"""``servetwin calibrate``: from public tables to a profile."""

from typer.testing import CliRunner

from servetwin.app import app
from simcore.cost.calibrated import load_profile
from simcore.errors import InputError


def test_import_then_fit_gives_a_profile(shared_data, tmp_path):
    root = str(shared_data / "profiles" / "aiconfigurator")
    command = ["calibrate", "import", "aiconfigurator", "--system", "a100_sxm", "--root", root]
    done = CliRunner().invoke(app, [*command, "--engine", "nccl", "--out", str(tmp_path / "samples")])
    assert done.exit_code == 0, done.output
    (file,) = (tmp_path / "samples").iterdir()
    assert file.name == "a100-sxm-80gb.nccl-2.27.3.collective.csv"
    done = CliRunner().invoke(app, ["calibrate", "fit", str(file), "--out", str(tmp_path / "own")])
    assert done.exit_code == 0, done.output
    assert "held-out points" in done.output
    profile = load_profile("a100-sxm-80gb", str(tmp_path / "own"))
    assert profile.collective("all_gather", "nccl", 8).seconds(1 << 20) > 0


def test_what_is_missing_is_said():
    for command in (["llmservingsim", "--root", "."], ["vidur"]):
        done = CliRunner().invoke(app, ["calibrate", "import", *command])
        assert isinstance(done.exception, InputError)
        assert "is not given, expected one for this source" in str(done.exception)
