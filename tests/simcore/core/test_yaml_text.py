"""YAML is read strictly: nothing that a user wrote is dropped or misread without a word."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from simcore.core.errors import FileError
from simcore.core.yaml_text import _Loader, parse_yaml, read_yaml, yaml_problem


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000),
        ("+2E+2", 200),
        ("1.5e3", 1500),
        (".5e1", 5),
        ("2.", 2.0),
        ("-1e-3", -0.001),
        ("1e30", 1e30),
        ("1.5", 1.5),
        ("12", 12),
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


@given(st.floats(allow_nan=False, allow_infinity=False))
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
        ("a: !own b\n", ", line 1: not valid YAML: the tag '!own' stands where a plain value must."),
        ("a: 1\n---\na: 2\n", ", line 2: not valid YAML: expected a single document"),
        ("a: !!int x\n", ", line 1: not valid YAML: the tag 'tag:yaml.org,2002:int' stands where a plain"),
        (f"\na: {'9' * 5000}\n", f", line 2: not valid YAML: the value '{'9' * 40}' cannot be read."),
        ("? [a]\n: b\n", ", line 1: not valid YAML: found unhashable key"),
        ("a: .inf\n", ", line 1: not valid YAML: '.inf' is no finite number."),
        ("a: 1e400\n", ", line 1: not valid YAML: '1e400' is no finite number."),
        ("a: !!timestamp x\n", ", line 1: not valid YAML: the tag 'tag:yaml.org,2002:timestamp' stands where a plain"),
        ("a: 1\nb: !!merge x\n", ", line 2: not valid YAML: the tag 'tag:yaml.org,2002:merge' stands where a plain"),
        ("a: 0b_\n", ", line 1: not valid YAML: the value '0b_' cannot be read."),
        ("a: &x [1, *x]\n", ", line 1: not valid YAML: 'x' stands for a value that would hold itself."),
        ("a: \0", ": not valid YAML: it holds characters that no text has."),
        ("[" * 5000, ", line 1: not valid YAML: it is nested too deeply, beyond 50 levels."),
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


def test_what_aliases_stand_for_is_counted_before_it_is_built(tmp_path):
    """Ten aliases a line make 10^20 values of twenty lines."""
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 20)]
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join(lines))
    with pytest.raises(FileError, match="line 6: not valid YAML: it is too large, with more than 1,000,000 values"):
        read_yaml(path)
    assert parse_yaml("\n".join(lines[:3]))["a2"][9][9] == [1] * 10


@pytest.mark.parametrize("text", ["9" * 5000, "1" * 5000 + ".0", "1:" * 4000 + "1", ":".join(["59"] * 1000) + ".5"])
def test_no_number_costs_more_than_its_length(text):
    with pytest.raises(yaml.YAMLError, match="cannot be read"):
        parse_yaml(f"a: {text}")


def test_a_file_that_does_not_end_is_refused(monkeypatch):
    monkeypatch.setattr("simcore.core.files.MOST_BYTES", 1 << 20)
    with pytest.raises(FileError, match="is larger than 1 MiB"):
        read_yaml(Path("/dev/zero"))


def test_the_parser_in_c_and_the_one_in_python_read_alike(monkeypatch):
    text = "[1e3, .5e1, 2., 2024-13-45, 1e30, =, 0x10, 1_000, ~, yes, 'no', {a: &x [b], c: *x}]"
    fast = parse_yaml(text)
    monkeypatch.setattr("simcore.core.yaml_text._FastLoader", _Loader)
    assert repr(parse_yaml(text)) == repr(fast)


def test_bytes_of_the_command_line_that_are_no_text_are_refused():
    with pytest.raises(yaml.YAMLError) as caught:
        parse_yaml("name: \udcf2")
    assert yaml_problem(caught.value) == "it holds characters that no text has"
