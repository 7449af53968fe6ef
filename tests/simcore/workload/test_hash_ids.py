"""Traces that say by hash ids what their prompts contain."""

import json

import numpy as np
import pytest

from simcore.core.content import Run
from simcore.core.errors import FileError
from simcore.workload import TraceWorkload, build_workload
from simcore.workload.describe import describe
from simcore.workload.traces import Columns, read_trace


def lines(*rows) -> str:
    keys = ("arrival_s", "prompt_tokens", "output_tokens", "blocks")
    return "".join(json.dumps(dict(zip(keys, row, strict=False))) + "\n" for row in rows)


MOONCAKE = (
    '{"timestamp": 0, "input_length": 1100, "output_length": 7, "hash_ids": [4, 5, 9]}\n'
    '{"timestamp": 1, "input_length": 600, "output_length": 3, "hash_ids": [4, 6]}\n'
)


def contents(trace):
    return [(content.prompt, content.output_first) for content in trace.contents]


def test_ids_are_blocks_of_512_in_mooncake_traces(tmp_path):
    (tmp_path / "m.jsonl").write_text(MOONCAKE)
    trace = read_trace(tmp_path / "m.jsonl")
    assert trace.block_tokens == 512
    assert contents(trace) == [
        ((Run(4 * 512, 1024), Run(9 * 512, 76)), 5120),
        ((Run(4 * 512, 512), Run(6 * 512, 88)), 5127),
    ]


def test_a_mooncake_trace_without_ids_is_one_of_lengths(tmp_path):
    (tmp_path / "m.jsonl").write_text('{"timestamp": 0, "input_length": 5, "output_length": 7}\n')
    trace = read_trace(tmp_path / "m.jsonl")
    assert (trace.contents, trace.block_tokens) == (None, None)


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_columns_of_ones_own(tmp_path, kind):
    text = lines((5, 30, 2, [3, 1]), (0, 16, 1, [3]))
    if kind == "csv":
        text = 'arrival_s,prompt_tokens,output_tokens,blocks\n5,30,2,"[3, 1]"\n0,16,1,[3]\n'
    (tmp_path / f"t.{kind}").write_text(text)
    columns = Columns(hash_ids="blocks")
    trace = read_trace(tmp_path / f"t.{kind}", columns=columns, block_tokens=16, sort=True)
    assert contents(trace) == [((Run(48, 16),), 66), ((Run(48, 16), Run(16, 14)), 64)]


REFUSED = [
    ((0, 33, 1, [1, 2]), 16, "line 2: blocks has 2 ids, expected 3: one for each 16 of the 33 prompt tokens"),
    ((0, 33, 1, [1, 2, 3]), 32, "line 2: blocks has 3 ids, expected 2: one for each 32 of the 33 prompt tokens"),
    ((0, 16, 1, []), 16, "line 2: blocks has 0 ids, expected 1"),
    ((0, 16, 1, [-1]), 16, r"line 2: blocks is \[-1\], expected a list of whole numbers of at least 0"),
    ((0, 16, 1, [1.5]), 16, "line 2: blocks is .*expected a list of whole numbers"),
    ((0, 16, 1, [True]), 16, "line 2: blocks is .*expected a list of whole numbers"),
    ((0, 16, 1, 5), 16, "line 2: blocks is 5, expected a list of whole numbers"),
    ((0, 16, 1, None), 16, "line 2: blocks is missing, expected a list of whole numbers"),
    ((0, 16, 1), 16, "line 2: has no key 'blocks'"),
]


@pytest.mark.parametrize(("row", "block_tokens", "problem"), REFUSED)
def test_wrong_ids_name_file_and_line(tmp_path, row, block_tokens, problem):
    (tmp_path / "t.jsonl").write_text(lines((0, block_tokens, 1, [1]), row))
    with pytest.raises(FileError, match=rf"t\.jsonl, {problem}"):
        read_trace(tmp_path / "t.jsonl", columns=Columns(hash_ids="blocks"), block_tokens=block_tokens)


def test_the_size_of_a_block_is_never_guessed(tmp_path):
    (tmp_path / "t.jsonl").write_text(lines((0, 16, 1, [1])))
    with pytest.raises(FileError, match=r"line 1: blocks stands for blocks of unknown size, .*'block_tokens'"):
        read_trace(tmp_path / "t.jsonl", columns=Columns(hash_ids="blocks"))
    with pytest.raises(FileError, match=r"t\.jsonl: has no hash ids, expected them where 'block_tokens'"):
        read_trace(tmp_path / "t.jsonl", block_tokens=16)
    with pytest.raises(FileError, match=r"has no column 'block' of format jsonl .did you mean 'blocks'"):
        read_trace(tmp_path / "t.jsonl", columns=Columns(hash_ids="block"), block_tokens=16)


def test_another_size_of_block_than_the_format_has(tmp_path):
    (tmp_path / "m.jsonl").write_text(MOONCAKE)
    with pytest.raises(FileError, match="line 1: hash_ids has 3 ids, expected 5: one for each 256 of the 1100"):
        build_workload(TraceWorkload(trace="m.jsonl", block_tokens=256), 0, tmp_path)


def test_a_replay_keeps_the_content_of_what_it_keeps(tmp_path):
    (tmp_path / "m.jsonl").write_text(MOONCAKE)
    workload = build_workload(TraceWorkload(trace="m.jsonl", rate_scale=2.0, window_s=(0.001, 1)), 0, tmp_path)
    (kept,) = workload.requests.contents
    assert kept.prompt == (Run(4 * 512, 512), Run(6 * 512, 88))


def test_reuse_counts_blocks_from_the_start_of_a_prompt(tmp_path):
    rows = '{"timestamp": %d, "input_length": %d, "output_length": 1, "hash_ids": %s}\n'
    # Of the second, its first block; of the third, which begins otherwise, nothing; of the fourth, all.
    text = "".join(rows % row for row in ((0, 1100, [4, 5, 9]), (1, 600, [4, 6]), (2, 600, [7, 5]), (3, 600, [4, 6])))
    (tmp_path / "m.jsonl").write_text(text)
    assert describe(tmp_path / "m.jsonl").reusable_share == (512 + 600) / 2900


def test_the_published_reuse_of_the_mooncake_traces(shared_data):
    for name, share in (("conversation", 0.374), ("synthetic", 0.651)):
        path = shared_data / "traces" / "mooncake" / f"{name}_trace.jsonl"
        trace = read_trace(path)
        recorded = [json.loads(line) for line in path.read_text().splitlines()]
        assert np.array_equal(trace.contents.prompt_tokens, trace.prompt_tokens)
        assert [content.prompt[0].first for content in trace.contents] == [512 * row["hash_ids"][0] for row in recorded]
        assert describe(path).reusable_share == pytest.approx(share, abs=0.001)
