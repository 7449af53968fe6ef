"""The page on structure and speed."""

import json

from tools.structure_results import (
    BEFORE,
    ROOT,
    Measured,
    document,
    function_lines,
    in_cycles,
    package_imports,
    touches,
)


def test_packages_of_the_simulator_are_in_no_cycle():
    assert not in_cycles(package_imports(ROOT / "simcore"))


def test_a_cycle_is_found_even_if_only_type_checkers_see_it(tmp_path):
    root = tmp_path / "simcore"
    sources = {
        "one": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from simcore.two import b\n",
        "two": "from simcore import three\n",
        "three": "import simcore.one.a\n",
        "four": "from simcore.one import a\n",
    }
    for name, source in sources.items():
        (root / name).mkdir(parents=True)
        (root / name / "__init__.py").write_text(source)
    assert in_cycles(package_imports(root)) == {"one", "two", "three"}


def test_functions_are_measured_by_their_lines(tmp_path):
    (tmp_path / "a.py").write_text("def one():\n    return 1\n\n\nclass A:\n    def two(self): ...\n")
    assert sorted(function_lines(tmp_path)) == [1, 2]


def test_touches_are_read_from_the_table_of_additions():
    found = touches((ROOT / "CONTRIBUTING.md").read_text())
    assert found["policy"] == "1"
    assert set(found) >= set(json.loads(BEFORE.read_text())["touches"])


def test_what_nobody_measured_is_said_to_be_so():
    measured = Measured(20, 0, 60, {"policy": "1"}, None, 0.1, 1.0, 0.5, 0.2)
    page = document(json.loads(BEFORE.read_text()), measured, None)
    assert "| all tests one after the other, minutes | not measured | not measured |" in page
    assert "| files touched to add: policy | 3 | 1 |" in page
