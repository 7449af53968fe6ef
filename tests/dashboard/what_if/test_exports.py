"""A setup that was taken away is the setup that was on the page, and its numbers are the command line's."""

import ast
import subprocess

import pytest

from dashboard.what_if.exports import as_command, as_python, as_yaml
from dashboard.what_if.setups import default_pair
from dashboard.what_if.uploads import scenario_in

DOCUMENT = default_pair().document("B")


def test_the_file_holds_the_setup():
    assert scenario_in("b.yaml", as_yaml(DOCUMENT).encode()) == DOCUMENT


def test_the_script_holds_the_setup():
    tree = ast.parse(as_python(DOCUMENT, "b"))
    assignment = next(node for node in tree.body if isinstance(node, ast.Assign))
    assert ast.literal_eval(assignment.value) == DOCUMENT


@pytest.mark.parametrize(
    "model", ["llama-3.1-8b", "$(touch hacked)", "`touch hacked`", "it's\nEND_OF_SCENARIO\ntouch hacked"]
)
def test_the_commands_write_the_setup_and_expand_nothing(model, tmp_path):
    document = DOCUMENT | {"model": model}
    commands = as_command(document, "b").replace("servetwin run", "cat")
    subprocess.run(["sh", "-e"], input=commands, text=True, cwd=tmp_path, check=True, capture_output=True)
    assert not (tmp_path / "hacked").exists()
    assert scenario_in("b.yaml", (tmp_path / "b.yaml").read_bytes()) == document
