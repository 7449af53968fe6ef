"""Files of load generators and of conversations, as traces and as lengths."""

import json

import pytest

from servetwin import simulate
from simcore.core.errors import FileError
from simcore.workload.traces import read_trace

VLLM = {"request_rate": 10.0, "input_lens": [300, 301, 302], "output_lens": [100, 101, 102]}
AIPERF = {
    "metadata": {"request_start_ns": 1766000000000000000, "benchmark_phase": "profiling"},
    "metrics": {"input_sequence_length": {"value": 300}, "output_sequence_length": {"value": 100}},
}
GUIDE = {"prompt_tokens": 300, "output_tokens": 100, "request_start_time": 1766000000.0}
SCENARIO = {"model": "smollm2-135m", "cluster": {"accelerator": "h100-sxm"}}


def written(tmp_path, name, document):
    path = tmp_path / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def read(tmp_path, name, document):
    trace = read_trace(written(tmp_path, name, document))
    arrivals = None if trace.arrival_ns is None else trace.arrival_ns.tolist()
    return trace.format, arrivals, trace.prompt_tokens.tolist(), trace.output_tokens.tolist()


def test_vllm_bench_serve_with_and_without_start_times(tmp_path):
    lengths = [300, 301, 302], [100, 101, 102]
    assert read(tmp_path, "a.json", VLLM) == ("vllm-bench-rate", [0, 100_000_000, 200_000_000], *lengths)
    timed = VLLM | {"start_times": [5.0, 5.25, 6.0]}
    assert read(tmp_path, "b.json", timed) == ("vllm-bench", [0, 250_000_000, 1_000_000_000], *lengths)
    assert read(tmp_path, "c.json", VLLM | {"request_rate": "inf"})[1] == [0, 0, 0]


def test_evenly_spread_requests_are_told(tmp_path):
    written(tmp_path, "a.json", VLLM)
    notices = simulate(SCENARIO | {"workload": {"trace": "a.json"}}, base_dir=tmp_path).summary["notices"]
    assert any("spread evenly at the rate that it states" in notice for notice in notices)


def test_guidellm(tmp_path):
    later = GUIDE | {"request_start_time": 1766000000.5}
    document = {"benchmarks": [{"requests": {"successful": [GUIDE, later], "errored": [{}]}}]}
    assert read(tmp_path, "a.json", document) == ("guidellm", [0, 500_000_000], [300, 300], [100, 100])


def test_aiperf_without_its_warm_up(tmp_path):
    warm_up = AIPERF | {"metadata": AIPERF["metadata"] | {"benchmark_phase": "warmup"}}
    later = AIPERF | {"metadata": AIPERF["metadata"] | {"request_start_ns": 1766000000100000001}}
    lines = "\n".join(json.dumps(record) for record in (warm_up, AIPERF, later))
    assert read(tmp_path, "a.jsonl", lines) == ("aiperf", [0, 100_000_001], [300, 300], [100, 100])


def test_sharegpt_gives_lengths_alone(tmp_path):
    def conversation(*senders):
        return {"conversations": [{"from": sender, "value": "hello you"} for sender in senders]}

    document = [conversation("human", "gpt"), conversation("gpt", "human"), conversation("human")]
    assert read(tmp_path, "a.json", document) == ("sharegpt", None, [3], [3])
    with pytest.raises(FileError, match="has no arrival times, expected them, or its use as 'lengths"):
        simulate(SCENARIO | {"workload": {"trace": "a.json"}}, base_dir=tmp_path)
    lengths = {"requests": 5, "arrivals": {"name": "at-once"}, "lengths": {"name": "empirical", "file": "a.json"}}
    result = simulate(SCENARIO | {"workload": lengths}, base_dir=tmp_path)
    assert result.requests["prompt_tokens"].tolist() == [3] * 5


@pytest.mark.parametrize("arrivals", [{"name": "at-once"}, {"name": "closed-loop", "concurrency": 2}])
@pytest.mark.parametrize("tenants", [{}, {"tenant": "a"}])
def test_that_tokens_of_sharegpt_are_estimated_is_told(arrivals, tenants, tmp_path):
    turns = [{"from": sender, "value": "hello you"} for sender in ("human", "gpt")]
    (tmp_path / "a.json").write_text(json.dumps([{"conversations": turns}]))
    lengths = {"requests": 5, "arrivals": arrivals, "lengths": {"name": "empirical", "file": "a.json"}} | tenants
    summary = simulate(SCENARIO | {"workload": lengths}, base_dir=tmp_path).summary
    (told,) = [notice for notice in summary["notices"] if "a.json" in notice]
    assert told.endswith("it holds text and no token counts: four characters are taken for a token.")


def test_dynamo_and_bailian_are_told_from_mooncake(tmp_path):
    dynamo = {"created_time": 400, "input_tokens": 600, "output_tokens": 20, "hash_ids": [1, 3]}
    assert read(tmp_path, "a.jsonl", json.dumps(dynamo)) == ("dynamo", [0], [600], [20])
    turn = {"timestamp": 0.5, "input_length": 20, "output_length": 2, "hash_ids": [1, 2]}
    chats = [turn | {"chat_id": 1, "parent_chat_id": -1, "turn": 1, "timestamp": at} for at in (0.5, 2.0)]
    assert read(tmp_path, "b.jsonl", "\n".join(map(json.dumps, chats)))[:2] == ("qwen-bailian", [0, 1_500_000_000])


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "is of no known kind"),
        ([], "is of no known kind"),
        ([1], "is of no known kind"),
        ("{", "is not valid JSON"),
        ([{"id": 1}], "holds no request"),
        (VLLM | {"output_lens": [1]}, "no lists of one length"),
        (VLLM | {"start_times": [1.0]}, "no list of 3"),
        (VLLM | {"request_rate": None}, "no request_rate to tell them from"),
        (VLLM | {"request_rate": 0}, "no request_rate to tell them from"),
        (VLLM | {"input_lens": [1, 2, "x"]}, "row 3: input_lens is 'x'"),
        ({"benchmarks": [{}, {}]}, "holds 2 benchmarks, expected one"),
        ({"benchmarks": [7]}, "has no list of successful requests"),
        (
            {"benchmarks": [{"requests": {"successful": [{"prompt_tokens": 1}]}}]},
            "has no column 'output_tokens' of format guidellm",
        ),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path, document, said):
    with pytest.raises(FileError, match=said):
        read_trace(written(tmp_path, "a.json", document))


def test_ids_of_64_bits_and_hexadecimal_ones(tmp_path):
    ids = ["9f86d081884c7d65", "a3c5b0ff12d4e698"]
    first = {"timestamp": 0, "input_length": 30, "output_length": 2, "hash_ids": ids}
    second = first | {"hash_ids": ["9f86d081884c7d65", 2**64 - 1]}
    third = first | {"hash_ids": [7, 2**64 - 1]}
    path = written(tmp_path, "a.jsonl", "\n".join(map(json.dumps, (first, second, third))))
    contents = read_trace(path, block_tokens=16).contents
    assert contents is not None
    tokens = [[run.first + place for run in content.prompt for place in range(run.tokens)] for content in contents]
    assert all(len(prompt) == 30 for prompt in tokens)
    assert tokens[0][:16] == tokens[1][:16]
    assert tokens[1][16:] == tokens[2][16:]
    assert tokens[2][0] == 7 * 16
    assert not {*tokens[0][16:]} & {*tokens[1][16:], *tokens[1][:16]}
