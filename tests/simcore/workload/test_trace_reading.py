import csv
import gzip
import json
import zlib
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simcore.core.errors import FileError, InputError, UnknownNameError
from simcore.workload.lengths import MAX_TOKENS
from simcore.workload.traces import Columns, read_trace

S = 10**9
AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109\r\n2023-11-17 00:00:00,879,55\r\n"
)
BURSTGPT = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,1087,0,1087,API log\n118.5,GPT-4,417,276,693,API log\n"
)
MOONCAKE = (
    '{"timestamp": 27482, "input_length": 855, "output_length": 52, "hash_ids": [46, 47]}\n'
    '{"timestamp": 30535, "input_length": 512, "output_length": 26, "hash_ids": [46]}\n'
)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_bytes(text.encode())
    return path


def arrivals(trace) -> list[int]:
    return trace.arrival_ns.tolist()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_azure(tmp_path, name):
    trace = read_trace(write(tmp_path, name, AZURE))
    assert trace.format == "azure2023"
    assert arrivals(trace) == [0, 4_314_579_000, 20_653_319_410_000]
    assert trace.prompt_tokens.tolist() == [374, 396, 879]
    assert trace.output_tokens.tolist() == [44, 109, 55]


@pytest.mark.parametrize("name", ["m.jsonl", "m.jsonl.gz"])
def test_mooncake(tmp_path, name):
    trace = read_trace(write(tmp_path, name, MOONCAKE))
    assert (trace.format, arrivals(trace)) == ("mooncake", [0, 3053 * 10**6])
    assert trace.prompt_tokens.tolist() == [855, 512]


def test_burstgpt_failures_are_refused_or_left_out_as_asked(tmp_path):
    path = write(tmp_path, "b.csv", BURSTGPT)
    with pytest.raises(FileError, match=r"b.csv, line 3: Response tokens is 0, .*'skip_failed'"):
        read_trace(path)
    trace = read_trace(path, skip_failed=True)
    assert (trace.format, trace.failed, arrivals(trace)) == ("burstgpt", 1, [0, 113_500_000_000])


def test_lengths_alone(tmp_path):
    trace = read_trace(write(tmp_path, "v.csv", "num_prefill_tokens,num_decode_tokens,pd_ratio\n74,918,0.08\n"))
    assert (trace.format, trace.arrival_ns) == ("vidur", None)


def test_vidur_with_arrivals(tmp_path):
    text = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,74,918\n1.25,1,2\n"
    assert arrivals(read_trace(write(tmp_path, "v.csv", text))) == [0, 750_000_000]


def test_generic_by_default_columns(tmp_path):
    text = "prompt_tokens,arrival_s,output_tokens\n10,0.1,5\n20,0.30000000000000004,6\n"
    assert arrivals(read_trace(write(tmp_path, "own.csv", text))) == [0, 200_000_000]


@pytest.mark.parametrize(
    ("unit", "values"), [("s", (1, 1.5)), ("ms", (1000, 1500)), ("us", (10**6, 1.5e6)), ("ns", (S, 15 * S // 10))]
)
def test_units(tmp_path, unit, values):
    rows = "".join(f"{value},3,4\n" for value in values)
    path = write(tmp_path, "own.csv", "when,p,o\n" + rows)
    assert arrivals(read_trace(path, columns=Columns("when", unit, "p", "o"))) == [0, S // 2]


def test_epoch_seconds_keep_every_digit(tmp_path):
    lines = [f'{{"at": 1777142984.{fraction}, "i": 1, "o": 2}}\n' for fraction in ("000000001", "500000003")]
    path = write(tmp_path, "own.jsonl", "".join(lines))
    assert arrivals(read_trace(path, columns=Columns("at", "s", "i", "o"))) == [0, 500_000_002]


def test_timestamps_with_an_offset(tmp_path):
    text = "t,p,o\n2024-05-10T00:00:00+02:00,1,2\n2024-05-09 22:00:01.000000001Z,1,2\n2024-05-09 22:00:02Z,1,2\n"
    trace = read_trace(write(tmp_path, "own.csv", text), columns=Columns("t", "timestamp", "p", "o"))
    assert arrivals(trace) == [0, S + 1, 2 * S]


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        ("2024-05-09 22:00:01Z", "2024-05-09 22:00:02", "a time with an offset from UTC, such as Z, as in"),
        ("2024-05-09 22:00:01", "2024-05-09 22:00:02+01:00", "a time without an offset from UTC as in"),
    ],
)
def test_timestamps_with_and_without_an_offset_are_not_mixed(tmp_path, first, second, rule):
    path = write(tmp_path, "own.csv", f"t,p,o\n{first},1,2\n{second},1,2\n")
    with pytest.raises(FileError) as caught:
        read_trace(path, columns=Columns("t", "timestamp", "p", "o"))
    assert str(caught.value) == f"{path}, line 3: t is {second!r}, expected {rule} the rows above."


@pytest.mark.parametrize("column", ["arrival_s", "prompt_tokens", "output_tokens"])
@pytest.mark.parametrize("number", ["1_000", "１０", "١٢"])
def test_numbers_are_plain_ones(tmp_path, column, number):
    row = {"arrival_s": "0", "prompt_tokens": "10", "output_tokens": "20"} | {column: number}
    path = write(tmp_path, "own.csv", f"{','.join(row)}\n0,1,1\n{','.join(row.values())}\n")
    with pytest.raises(FileError, match=f"own.csv, line 3: {column} is '{number}', expected a "):
        read_trace(path)
    quoted = write(tmp_path, "own.jsonl", json.dumps({**row, column: number}) + "\n")
    with pytest.raises(FileError, match=f"own.jsonl, line 1: {column} is '{number}', expected a "):
        read_trace(quoted)


def test_a_column_that_stands_twice(tmp_path):
    header = "arrival_s,prompt_tokens,output_tokens,prompt_tokens\n"
    path = write(tmp_path, "own.csv", f"{header}0,1,2,3\n")
    with pytest.raises(FileError, match=r"own.csv: has the column 'prompt_tokens' twice, expected it once\."):
        read_trace(path)
    with pytest.raises(FileError, match="has the column 'prompt_tokens' twice"):
        read_trace(path, columns=Columns())
    unused = write(tmp_path, "unused.csv", "arrival_s,prompt_tokens,output_tokens,x,x,x\n0,1,2,3,3,3\n")
    assert len(read_trace(unused)) == 1
    table = pa.Table.from_arrays([pa.array([1.0])] * 4, names=header.strip().split(","))
    pq.write_table(table, tmp_path / "own.parquet")
    with pytest.raises(FileError, match="has the column 'prompt_tokens' twice"):
        read_trace(tmp_path / "own.parquet")
    keys = '{"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 1}\n'
    repeated = write(tmp_path, "own.jsonl", keys + keys.replace("output_tokens", "prompt_tokens"))
    with pytest.raises(FileError, match=r"own.jsonl, line 2: has the key 'prompt_tokens' twice\."):
        read_trace(repeated)


@pytest.mark.parametrize("unit", ["timestamp", "s"])
def test_parquet(tmp_path, unit):
    seconds = {
        "timestamp": pa.array([datetime(2024, 1, 1, 0, 0, 1), datetime(2024, 1, 1, 0, 0, 3, 500_000)]),
        "s": [1.0, 3.5],
    }
    table = pa.table(
        {"arrival_s": seconds[unit], "prompt_tokens": [10, 20], "output_tokens": [1, 2], "other": ["a", "b"]}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    trace = read_trace(tmp_path / "t.parquet", columns=Columns(arrival_unit=unit))
    assert arrivals(trace) == [0, 2_500_000_000]
    assert trace.prompt_tokens.tolist() == [10, 20]


def test_parquet_names_the_row(tmp_path):
    table = pa.table({"arrival_s": [0.0, 1.0], "prompt_tokens": [10, None], "output_tokens": [1, 2]})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(FileError, match=r"t.parquet: row 2: prompt_tokens is missing"):
        read_trace(tmp_path / "t.parquet")


BROKEN_LENGTHS = ["-3", "nan", "inf", "12.5", "", "many", "0", "1e99", str(MAX_TOKENS + 1), "True"]


@pytest.mark.parametrize("value", BROKEN_LENGTHS)
def test_a_broken_prompt_length_names_file_and_line(tmp_path, value):
    path = write(tmp_path, "own.csv", f"arrival_s,prompt_tokens,output_tokens\n0,5,5\n\n1,{value},5\n")
    with pytest.raises(
        FileError, match=rf"own\.csv, line 4: prompt_tokens is {(value and repr(value)) or 'missing'}, expected"
    ):
        read_trace(path)


@pytest.mark.parametrize("value", ["-1", "0.5", "null", "true", '"x"', "[1]", "NaN", "Infinity"])
def test_a_broken_output_length_in_jsonl(tmp_path, value):
    good = '{"arrival_s": 0, "prompt_tokens": 5, "output_tokens": 5.0}\n'
    path = write(tmp_path, "own.jsonl", good + good.replace("5.0", value))
    with pytest.raises(FileError, match=r"own\.jsonl, line 2: output_tokens is .*expected a whole number"):
        read_trace(path)


@pytest.mark.parametrize("value", ["", "noon", "nan", "1e40"])
def test_a_broken_arrival(tmp_path, value):
    path = write(tmp_path, "own.csv", f"arrival_s,prompt_tokens,output_tokens\n{value},5,5\n")
    with pytest.raises(FileError, match=r"line 2: arrival_s is "):
        read_trace(path)


@pytest.mark.parametrize("value", ["2023-13-01 00:00:00", "yesterday", "1700000000"])
def test_a_broken_timestamp(tmp_path, value):
    with pytest.raises(FileError, match=rf"line 2: TIMESTAMP is '{value}', expected a date and time"):
        read_trace(write(tmp_path, "a.csv", f"TIMESTAMP,ContextTokens,GeneratedTokens\n{value},5,5\n"))


UNREADABLE = [
    ("a.csv", "", "is empty"),
    ("a.jsonl", "", "is empty"),
    ("a.csv", "arrival_s,prompt_tokens,output_tokens\n", "holds no request"),
    ("a.csv", "arrival_s,prompt_tokens,output_tokens\n0,1,0\n", "holds no request that succeeded"),
    ("a.csv", "arrival_s,prompt_tokens,output_tokens\n0,1\n", "line 2: has 2 fields, expected 3"),
    ("a.csv", "TIMESTAMP,ContextToken,GeneratedTokens\n", r"no column 'ContextTokens' .*did you mean 'ContextToken'"),
    ("a.csv", "a,b\n1,2\n", "expected those of a known format"),
    ("a.jsonl", "[1]\n", "line 1: is not a JSON object"),
    ("a.jsonl", MOONCAKE + "{\n", "line 3: is not valid JSON"),
    (
        "a.jsonl",
        MOONCAKE + '{"timestamp": 1, "input_lenght": 3, "output_length": 4}\n',
        "line 3: has no key 'input_length'.*lenght",
    ),
    ("a.parquet", "text", "is not a Parquet file"),
    ("a.txt", "text", "is of no known kind"),
]


@pytest.mark.parametrize(("name", "text", "problem"), UNREADABLE)
def test_an_unreadable_file_is_one_sentence(tmp_path, name, text, problem):
    with pytest.raises(FileError, match=problem):
        read_trace(write(tmp_path, name, text), skip_failed=True)


@pytest.mark.parametrize("name", ["no.csv", "no.csv.gz", "no.jsonl", "no.parquet"])
def test_a_missing_file(tmp_path, name):
    with pytest.raises(FileError, match="no such file"):
        read_trace(tmp_path / name)


def test_broken_gzip_and_encoding_name_the_line(tmp_path):
    header, rows = b"arrival_s,prompt_tokens,output_tokens\n", [b"%d,%d,7\n" % (row, 1 + row) for row in range(20_000)]
    packed = gzip.compress(header + b"".join(rows))
    cut = packed[: len(packed) // 2]
    whole_lines = zlib.decompressobj(wbits=31).decompress(cut).count(b"\n")
    files = {
        "cut.csv.gz": (cut, f", line {whole_lines + 1}: is where the gzip file breaks off."),
        "head.csv.gz": (packed[:5], ", line 1: is where the gzip file breaks off."),
        "checksum.csv.gz": (packed[:-8] + bytes(8), ": is a broken gzip file (its checksum is wrong)."),
        "plain.csv.gz": (header, ": is a broken gzip file (it has no gzip header)."),
        "header.csv": (b"arrival_s,prompt_tokens,output_tokens,n\xe9\n", ", line 1: is not UTF-8 text."),
        "row.csv": (header + b"".join([*rows, b"\xff,1,1\n", *rows]), ", line 20002: is not UTF-8 text."),
        "row.csv.gz": (gzip.compress(header + rows[0] + b"\xff,1,1\n"), ", line 3: is not UTF-8 text."),
        "row.jsonl": (
            b'\n{"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 1, "x": "\xe9"}\n',
            ", line 2: is not UTF-8",
        ),
    }
    for name, (content, said) in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FileError) as caught:
            read_trace(tmp_path / name)
        assert str(caught.value).startswith(f"{tmp_path / name}{said}")


def test_arrivals_further_apart_than_a_clock_holds(tmp_path):
    rows = "arrival_s,prompt_tokens,output_tokens\n-9e9,1,1\n9e9,1,1\n"
    with pytest.raises(FileError, match="has arrivals more than 292 years apart"):
        read_trace(write(tmp_path, "own.csv", rows))


def test_what_can_be_no_path(tmp_path):
    for name in ("a\0b.csv", "a\ud800.csv", "x" * 300 + ".csv", "a\0b.parquet", "x" * 300 + ".parquet", "a\0.csv.gz"):
        with pytest.raises(FileError) as caught:
            read_trace(tmp_path / name)
        assert str(caught.value).isprintable()
        assert caught.value.problem.startswith(
            ("cannot be a path", "cannot be read (File name too long)", "cannot be read (")
        )


def test_json_that_no_parser_takes(tmp_path):
    for text, why in (
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5000, "a number beyond all bounds"),
        (f"1e-{'9' * 30}", "a number beyond all bounds"),
        ("{", "Expecting"),
    ):
        with pytest.raises(FileError, match=f"own.jsonl, line 1: is not valid JSON .*{why}"):
            read_trace(write(tmp_path, "own.jsonl", text))


def test_a_header_that_is_no_text_for_one_line(tmp_path):
    path = write(tmp_path, "own.csv", '"a\nb",' + ",".join(f"c{number}" for number in range(5000)) + "\n1,2\n")
    with pytest.raises(FileError) as caught:
        read_trace(path)
    assert str(caught.value).isprintable()
    assert "and 4981 more" in str(caught.value)
    with pytest.raises(FileError, match="line 1: is not valid CSV"):
        read_trace(write(tmp_path, "long.csv", "x" * 200_000 + "\n1\n"))


def test_unknown_format_and_columns_of_a_named_format(tmp_path):
    path = write(tmp_path, "a.csv", AZURE)
    with pytest.raises(UnknownNameError, match="Did you mean 'azure2023'"):
        read_trace(path, "azure2024")
    with pytest.raises(InputError, match="columns"):
        read_trace(path, "azure2023", Columns())


def test_unsorted_rows_are_refused_or_sorted_as_asked(tmp_path):
    text = "arrival_s,prompt_tokens,output_tokens\n5,1,1\n3,2,2\n5,3,3\n4,4,4\n"
    path = write(tmp_path, "own.csv", text)
    with pytest.raises(FileError, match=r"own.csv, line 3: arrival_s is earlier than in the row above \('sort'"):
        read_trace(path)
    trace = read_trace(path, sort=True)
    assert arrivals(trace) == [0, S, 2 * S, 2 * S]
    assert trace.prompt_tokens.tolist() == [2, 4, 1, 3]
    assert trace.out_of_order == 2


def test_reading_stops_early(tmp_path):
    path = write(tmp_path, "own.csv", "arrival_s,prompt_tokens,output_tokens\n2,1,1\n3,2,2\n4,3,3\nbroken\n")
    assert len(read_trace(path, limit=2)) == 2
    assert len(read_trace(path, until_ns=2 * S)) == 2
    with pytest.raises(FileError, match="line 5"):
        read_trace(path)


@pytest.mark.parametrize(("name", "rows", "duration_s"), [("code", 8819, 3435.948056), ("conv", 19366, 3501.721937)])
def test_the_azure_traces(shared_data, name, rows, duration_s):
    path = shared_data / "traces" / "azure2023" / f"AzureLLMInferenceTrace_{name}.csv"
    trace = read_trace(path)
    assert (trace.format, len(trace), trace.failed) == ("azure2023", rows, 0)
    assert trace.arrival_ns[-1] / 1e9 == pytest.approx(duration_s, abs=1e-6)
    with open(path, newline="") as text:
        recorded = list(csv.reader(text))[1:]
    assert trace.prompt_tokens.tolist() == [int(row[1]) for row in recorded]
    assert trace.output_tokens.tolist() == [int(row[2]) for row in recorded]


@pytest.mark.parametrize(("name", "rows"), [("conversation", 12031), ("synthetic", 3993)])
def test_the_mooncake_traces(shared_data, name, rows):
    path = shared_data / "traces" / "mooncake" / f"{name}_trace.jsonl"
    trace = read_trace(path)
    assert (trace.format, len(trace)) == ("mooncake", rows)
    recorded = [json.loads(line) for line in path.read_text().splitlines()]
    assert (trace.arrival_ns // 10**6).tolist() == [row["timestamp"] for row in recorded]
    assert trace.output_tokens.tolist() == [row["output_length"] for row in recorded]


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("sharegpt/sharegpt_8k_filtered_stats_llama2_tokenizer.csv", 30731),
        ("arxiv-summarization/arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv", 28257),
    ],
)
def test_the_length_files(shared_data, path, rows):
    trace = read_trace(shared_data / "traces" / path)
    assert (trace.format, trace.arrival_ns, len(trace)) == ("vidur", None, rows)


def test_named_columns_on_a_measured_run(shared_data):
    path = shared_data / "traces" / "lmsys-lengths" / "llama_lmsys_05.lengths.csv"
    columns = Columns("start_time_offset_ns", "ns", "context_tokens", "generated_tokens")
    trace = read_trace(path, columns=columns)
    assert (len(trace), trace.arrival_ns[1]) == (1024, 1500203480 - 197890289)
    assert np.all(trace.arrival_ns[1:] >= trace.arrival_ns[:-1])


def test_a_parquet_column_whose_name_is_no_text(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as parquet

    columns = {"arrival_s": [0.0], "prompt_tokens": [20], "output_tokens": [5]}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet", store_schema=False)
    named = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(named.replace(b"arrival_s", b"arr\xfcval_s"))
    with pytest.raises(FileError, match=r"a\.parquet: is not a Parquet file"):
        read_trace(tmp_path / "a.parquet")
