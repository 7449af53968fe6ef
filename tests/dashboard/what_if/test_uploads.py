"""Files that a visitor hands in are bounded, read strictly, and kept by their content."""

import pytest

from dashboard.what_if.uploads import LARGEST_SCENARIO_BYTES, keep_trace, known_traces, scenario_in
from simcore.core.errors import ServetwinError

GOOD = b"arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,20,6\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no mapping"),
        (b"- 1\n", "holds no mapping"),
        (b"\xff\xfe", "not UTF-8"),
        (b"a: [1,\n", "not valid YAML"),
        (b"a: !!python/object/apply:os.system ['touch hacked']\n", "not valid YAML"),
        (b"a" * (LARGEST_SCENARIO_BYTES + 1), "larger than 256 KiB"),
    ],
)
def test_what_is_no_scenario_is_refused(content, words):
    with pytest.raises(ServetwinError, match=rf"^mine\.yaml.*{words}"):
        scenario_in("mine.yaml", content)


def test_a_trace_is_kept_by_its_content(tmp_path):
    name = keep_trace("../../my trace.CSV", GOOD, tmp_path)
    assert keep_trace("again.csv", GOOD, tmp_path) == name
    assert known_traces(tmp_path)[name].read_bytes() == GOOD
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("mine.csv", b"arrival_s,prompt_tokens,output_tokens\n0,ten,5\n", r"^mine\.csv, line 2"),
        ("mine.csv", b"no,such,columns\n1,2,3\n", "columns"),
        ("mine.parquet", b"PAR1 but no table", "mine.parquet"),
        ("mine.exe", GOOD, "ends in .csv"),
        ("mine", GOOD, "ends in .csv"),
    ],
)
def test_what_is_no_trace_is_refused_and_not_kept(name, content, words, tmp_path):
    with pytest.raises(ServetwinError, match=words):
        keep_trace(name, content, tmp_path)
    assert list(tmp_path.iterdir()) == []
