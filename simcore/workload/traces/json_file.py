"""Requests in one JSON document: result files of load generators, and conversations."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from math import ceil
from pathlib import Path
from typing import Any

from simcore.core.errors import FileError
from simcore.core.files import exact_number, json_problem, parse_json
from simcore.workload.traces.text import whole

CHARACTERS_PER_TOKEN = 4
"""Of English text, about; conversations are read without a tokenizer."""
_SENDERS = {"human": "user", "user": "user", "gpt": "assistant", "chatgpt": "assistant", "assistant": "assistant"}

Rows = list[dict[str, Any]]


def column_names(path: Path) -> list[str]:
    """The columns that the document's requests have. Raises FileError for a document that is of no known kind."""
    return list(_requests(path)[0])


def rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[object]]]:
    """The number of each request, from 1, and the values of ``columns``."""
    for number, request in enumerate(_requests(path), start=1):
        for name in columns:
            if name not in request:
                raise FileError(path, f"row {number}: has no {name!r}")
        yield number, [request[name] for name in columns]


def _requests(path: Path) -> Rows:
    try:
        document = parse_json(whole(path), parse_float=exact_number)
    except (ValueError, RecursionError) as error:
        raise FileError(path, f"is not valid JSON ({json_problem(error)})") from error
    found: Rows = []
    if isinstance(document, Mapping) and "input_lens" in document:
        found = _of_vllm_bench(document, path)
    elif isinstance(document, Mapping) and isinstance(document.get("benchmarks"), list):
        found = _of_guidellm(document["benchmarks"], path)
    elif isinstance(document, list) and document and isinstance(document[0], Mapping):
        found = _of_conversations(document) if "conversations" in document[0] else []
    else:
        expected = "a result file of vllm bench serve or GuideLLM, or ShareGPT conversations"
        raise FileError(path, f"is of no known kind, expected {expected}")
    if not found:
        raise FileError(path, "holds no request")
    return found


def _of_vllm_bench(document: Mapping[str, Any], path: Path) -> Rows:
    """Requests with the times at which they were sent, or at which the stated rate sends them on average."""
    prompts, outputs, starts = (document.get(key) for key in ("input_lens", "output_lens", "start_times"))
    if not isinstance(prompts, list) or not isinstance(outputs, list) or len(prompts) != len(outputs):
        raise FileError(path, "has input_lens and output_lens that are no lists of one length")
    key = "start_times" if starts is not None else "mean_start_times"
    if starts is None:
        starts = _even_starts(document.get("request_rate"), len(prompts), path)
    if not isinstance(starts, list) or len(starts) != len(prompts):
        raise FileError(path, f"has start_times that are no list of {len(prompts)}, as input_lens is")
    columns = {key: starts, "input_lens": prompts, "output_lens": outputs}
    for name in ("ttfts", "itls"):
        times = document.get(name)
        if isinstance(times, list) and len(times) == len(prompts):
            columns[name] = times
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _even_starts(rate: object, count: int, path: Path) -> list[Decimal]:
    if rate == "inf" or (isinstance(rate, float) and rate == float("inf")):
        return [Decimal(0)] * count
    if isinstance(rate, bool) or not isinstance(rate, int | Decimal) or rate <= 0:
        raise FileError(path, "has no start_times, and no request_rate to tell them from")
    return [Decimal(place) / Decimal(rate) for place in range(count)]


def _of_guidellm(benchmarks: list[Any], path: Path) -> Rows:
    if len(benchmarks) != 1:
        raise FileError(path, f"holds {len(benchmarks)} benchmarks, expected one")
    requests = benchmarks[0].get("requests") if isinstance(benchmarks[0], Mapping) else None
    found = requests.get("successful") if isinstance(requests, Mapping) else requests
    if not isinstance(found, list) or not all(isinstance(request, dict) for request in found):
        raise FileError(path, "has no list of successful requests in its benchmark")
    return found


def _of_conversations(document: list[Any]) -> Rows:
    """Of each conversation that a user begins, the first question and its answer; others are passed over."""
    found: Rows = []
    for conversation in document:
        turns = conversation.get("conversations") if isinstance(conversation, Mapping) else None
        if not isinstance(turns, list) or len(turns) < 2 or not all(isinstance(turn, Mapping) for turn in turns[:2]):
            continue
        senders = [_SENDERS.get(str(turn.get("from", turn.get("role")))) for turn in turns[:2]]
        texts = [turn.get("value", turn.get("content")) for turn in turns[:2]]
        if senders == ["user", "assistant"] and all(isinstance(text, str) and text for text in texts):
            prompt, output = (ceil(len(text) / CHARACTERS_PER_TOKEN) for text in texts)
            found.append({"conversations": len(turns), "prompt_tokens": prompt, "output_tokens": output})
    return found
