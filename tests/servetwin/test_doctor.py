"""``servetwin doctor``: versions, what is usable and why not, and packages that hide servetwin's."""

import json
import sys
import tomllib
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

import servetwin.doctor_command as doctor


def test_a_sound_installation(command):
    ended = command("doctor")
    assert (ended.code, ended.err) == (0, "")
    for words in ("servetwin ", "Python 3.", "numpy ", "extra kernels: ", "no clash of package names"):
        assert words in ended.out


def test_json(command):
    ended = command("doctor", "--json")
    facts = json.loads(ended.out)
    assert (ended.code, facts["clashes"]) == (0, [])
    assert set(facts["packages"]) >= {"simpy", "numpy", "typer"}
    assert set(facts["extras"]) == {"kernels", "dashboard", "live", "ray"}


def test_an_extra_says_what_it_lacks(command, monkeypatch):
    monkeypatch.setattr(doctor, "OPTIONAL_PARTS", {"kernels": ("json", "no_such_module"), "dashboard": ("json",)})
    out = command("doctor").out
    assert "extra kernels: not usable: no no_such_module; pip install 'servetwin[kernels]'" in out
    assert "extra dashboard: usable" in out


def test_an_extra_without_code_is_not_usable(command, monkeypatch):
    monkeypatch.setattr(doctor, "OPTIONAL_PARTS", {"no_such_part": ("json",)})
    assert "extra no_such_part: not usable: no no_such_part" in command("doctor").out


def test_every_extra_but_that_of_developers_is_looked_at():
    pyproject = tomllib.loads((Path(doctor.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    extras = pyproject["project"]["optional-dependencies"]
    assert set(extras) - {"dev"} == set(doctor.OPTIONAL_PARTS)


def test_a_missing_base_package_is_an_error(command, monkeypatch):
    monkeypatch.setattr(doctor, "_base_requirements", lambda: ["numpy", "no-such-package"])
    ended = command("doctor")
    assert ended.code == 1
    assert "  no-such-package is missing; pip install servetwin" in ended.out


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize(
    ("package", "providers", "said"),
    [
        ("policies", ["servetwin", "insurance"], "the package 'policies' is also installed by insurance"),
        ("kernels", ["kernels"], "the package 'kernels' is also installed by kernels"),
    ],
)
def test_a_package_of_the_same_name(command, monkeypatch, options, package, providers, said):
    monkeypatch.setattr(doctor, "packages_distributions", lambda: {package: providers})
    ended = command("doctor", *options)
    assert ended.code == 1
    assert said in ended.out


def test_an_installed_distribution_of_the_same_name_is_found(tmp_path, monkeypatch):
    """As pip leaves Hugging Face's ``kernels``: a package and its metadata."""
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "__init__.py").touch()
    metadata = tmp_path / "kernels-0.4.4.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: kernels\nVersion: 0.4.4\n")
    (metadata / "top_level.txt").write_text("kernels\n")
    monkeypatch.delitem(sys.modules, "kernels", raising=False)  # another test may have imported servetwin's
    monkeypatch.syspath_prepend(str(tmp_path))
    installed, hidden = doctor.find_clashes()
    assert installed == "the package 'kernels' is also installed by kernels"
    assert hidden.startswith(f"import kernels finds {tmp_path / 'kernels'}, not servetwin's ")


def test_a_package_that_hides_servetwins(monkeypatch):
    found = doctor.find_spec

    def elsewhere(name):
        return ModuleSpec(name, None, origin="/other/dashboard/__init__.py") if name == "dashboard" else found(name)

    monkeypatch.setattr(doctor, "find_spec", elsewhere)
    home = Path(doctor.__file__).resolve().parent.parent
    assert doctor.find_clashes() == [f"import dashboard finds /other/dashboard, not servetwin's {home / 'dashboard'}"]
