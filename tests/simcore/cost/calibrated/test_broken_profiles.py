"""A profile whose tables do not fit what it says of them is refused where it is wrong, before anything is priced."""

import re
import shutil
from importlib import resources
from pathlib import Path

import pytest

from simcore.core.errors import ServetwinError
from simcore.cost.calibrated import load_profile


@pytest.fixture
def copied(tmp_path):
    folder = tmp_path / "profile"
    with resources.as_file(resources.files("hardware_profiles") / "rtx-4090" / "vllm-0.19.0") as source:
        shutil.copytree(source, folder)
    return folder


def row(folder: Path, number: int, column: int, cell: str) -> None:
    path = folder / "gemm.csv"
    lines = path.read_text().splitlines()
    cells = lines[number].split(",")
    cells[column] = cell
    lines[number] = ",".join(cells)
    path.write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("number", "column", "cell", "said"),
    [
        (1, 0, "zzz", "line 2: dtype is 'zzz', expected one of "),
        (1, 0, "int8", "line 2: dtype is 'int8', expected one of "),
        (1, 1, "0", "line 2: tokens_multiple_of is '0', expected a whole number"),
        (1, 2, "9" * 30, "line 2: n is '9999"),
        (1, 2, "9" * 5000, "line 2: n is '9999"),
        (1, 2, "²", "line 2: n is '²', expected a whole number"),
        (1, 4, "inf", "line 2: of its latencies none is given, or one is not from"),
        (1, 4, "nan", "line 2: of its latencies none is given, or one is not from"),
        (1, 4, "1e-300", "line 2: of its latencies none is given, or one is not from"),
        (1, 4, "9" * 200_000, "line 2: is not valid CSV (field larger than field limit"),
        (0, 4, "0", "line 1: a knot is not greater than 0"),
        (0, 4, "nan", "line 1: a knot is not greater than 0"),
        (0, -1, "inf", "line 1: a knot is not greater than 0"),
    ],
)
def test_a_cell_that_does_not_fit_is_named_with_its_line(copied, number, column, cell, said):
    row(copied, number, column, cell)
    with pytest.raises(ServetwinError, match=re.escape(f"gemm.csv, {said}")) as refused:
        load_profile("rtx-4090", str(copied))
    assert len(str(refused.value)) < 700


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("held_out:\n      all:", "held_out:\n      every:", r"held_out.all is missing, expected its held-out errors"),
        ("floor_s: ", "floor_s: -", r"floor_s is -.*, expected a number of at least 1e-12"),
        ("samples: ", "samples: 9999999999999", r"samples is .*, expected a whole number of at least 1 and of at most"),
        ("date: '2026", "date: '2026-99-29' #", r"date is '2026-99-29', expected a day such as 2026-11-29"),
        ("median: ", "median: 1e300 #", r"median is 1e\+300, expected a number of at least 0 and of at most 100"),
    ],
)
def test_what_a_profile_says_of_its_tables_is_bounded(copied, old, new, said):
    path = copied / "profile.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ServetwinError, match=said):
        load_profile("rtx-4090", str(copied))
