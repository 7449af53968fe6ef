"""YAML is read strictly: nothing that a user wrote is dropped or misread without a word."""

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from simcore.core.errors import FileError
from simcore.core.yaml_text import parse_yaml, read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000),
        ("+2E+2", 200),
        ("1.5e3", 1500),
        (".5e1", 5),
        ("2.", 2.0),
        ("-1e-3", -0.001),
        ("1e400", math.inf),
        ("1e30", 1e30),
        ("1.5", 1.5),
        ("12", 12),
        (".inf", math.inf),
        ("e3", "e3"),
        ("1e", "1e"),
        ("'1e3'", "1e3"),
        ("2024-13-45", "2024-13-45"),
        ("2024-11-05", "2024-11-05"),
        ("é", "é"),
    ],
)
def test_values(text, value):
    read = parse_yaml(text)
    assert (read, type(read)) == (value, type(value))


@given(st.floats(allow_nan=False))
def test_numbers_that_were_dumped_read_back(number):
    assert parse_yaml(yaml.safe_dump({"x": number})) == {"x": number}


def test_merge_keys_may_be_overridden():
    assert parse_yaml("base: &base {a: 1, b: 2}\nnext: {<<: *base, b: 3}")["next"] == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", ", line 3: not valid YAML: the key 'a' stands twice, here and in line 1."),
        ("s:\n  a: 1\n  a: 1\n", ", line 3: not valid YAML: the key 'a' stands twice, here and in line 2."),
        ("s: {a: 1, a: 2}\n", ", line 1: not valid YAML: the key 'a' stands twice, here and in line 1."),
        ("[{a: 1, a: 2}]", ", line 1: not valid YAML: the key 'a' stands twice"),
        ("a: [1, 2\n", ", line 2: not valid YAML: expected ',' or ']'"),
        ("a: b: c\n", ", line 1: not valid YAML: mapping values are not allowed here."),
        ("a:\n\tb: 1\n", ", line 2: not valid YAML: a tab stands where only spaces may."),
        ("a: *b\n", ", line 1: not valid YAML: found undefined alias 'b'."),
        ("a: !own b\n", ", line 1: not valid YAML: could not determine a constructor for the tag '!own'."),
        ("a: 1\n---\na: 2\n", ", line 2: not valid YAML: expected a single document"),
        ("a: !!int x\n", ", line 1: not valid YAML: the value 'x' cannot be read."),
        (f"\na: {'9' * 5000}\n", f", line 2: not valid YAML: the value '{'9' * 40}' cannot be read."),
        ("? [a]\n: b\n", ", line 1: not valid YAML: found unhashable key"),
        ("a: \0", ": not valid YAML: it holds characters that no text has."),
        ("[" * 5000, ": not valid YAML: it is nested too deeply."),
    ],
)
def test_what_is_no_yaml_names_the_line(text, said, tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        read_yaml(path)
    assert str(caught.value).startswith(f"{path}{said}")
    assert "\n" not in str(caught.value)


def test_what_is_no_text_file(tmp_path):
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"seed: 1\nmodel: mod\xe8le")
    for path, said in (
        (binary, ", line 2: is not UTF-8 text, expected a YAML file"),
        (tmp_path, ": is a folder, expected a YAML file"),
        (tmp_path / "none.yaml", ": no such file"),
        (tmp_path / ("x" * 300), ": cannot be read (File name too long)"),
    ):
        with pytest.raises(FileError) as caught:
            read_yaml(path)
        assert str(caught.value).endswith(f"{said}.")
        assert str(caught.value).startswith(str(path)[:100])
