"""The compiled form of the hot modules."""

import pytest

from tools import compiled, same_outputs


@pytest.mark.long
def test_the_compiled_form_gives_the_same_results_to_the_bit(tmp_path):
    compiled.build(tmp_path / "compiled")
    here, there = (same_outputs.run_in(checkout, 12, 1) for checkout in (same_outputs.ROOT, tmp_path / "compiled"))
    assert here == there
    assert not any(key.endswith(": error") for key in here)


def test_every_hot_module_is_there():
    assert all((compiled.ROOT / module).is_file() for module in compiled.HOT_MODULES)
    assert len(set(compiled.HOT_MODULES)) == len(compiled.HOT_MODULES)


def test_a_class_that_others_derive_from_is_opened_to_them(tmp_path):
    hot = tmp_path / "hot.py"
    hot.write_text('"""Hot."""\n\nimport sys\n\n\n@final\nclass Base:\n    pass\n\n\nclass Own:\n    pass\n')
    compiled.open_classes(hot, {"Base"})
    lines = hot.read_text().splitlines()
    assert lines[2:4] == ["from mypy_extensions import mypyc_attr", "import sys"]
    assert lines[6:9] == ["@mypyc_attr(allow_interpreted_subclasses=True)", "@final", "class Base:"]
    assert lines[-2:] == ["class Own:", "    pass"]


def test_a_module_that_does_not_compile_is_told(tmp_path):
    with pytest.raises(RuntimeError, match="mypyc failed"):
        compiled.build(tmp_path / "compiled", ["simcore/core/no_such_module.py"])
