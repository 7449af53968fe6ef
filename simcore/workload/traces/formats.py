"""The trace formats that are known by name: a kind of file, and which of its columns hold what."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FileKind = Literal["csv", "jsonl", "json", "parquet"]
ArrivalUnit = Literal["s", "ms", "us", "ns", "timestamp"]


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns. Unit "timestamp" is a date and time of day (ISO 8601; UTC where no offset is given).

    Those after the lengths say who sends a request, what it contains, and which request of a chat it answers; they are
    read only where they are named. ``block_tokens`` is how many tokens each of a row's ``hash_ids`` stands for;
    ``chat`` names a row and ``follows`` the row whose answer it goes on from.
    """

    arrival: str = "arrival_s"
    arrival_unit: ArrivalUnit = "s"
    prompt_tokens: str = "prompt_tokens"
    output_tokens: str = "output_tokens"
    tenant: str | None = None
    priority: str | None = None
    max_output_tokens: str | None = None
    hash_ids: str | None = None
    block_tokens: int | None = None
    chat: str | None = None
    follows: str | None = None

    def of_senders(self) -> dict[str, str]:
        """Those that say who sends a request, and when, as far as they are named, by what they hold."""
        named = ("tenant", "priority", "max_output_tokens", "chat", "follows")
        columns = {name: getattr(self, name) for name in named}
        return {name: column for name, column in columns.items() if column is not None}


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """One public trace's layout; ``source`` says where it is described.

    ``marks`` are columns that nothing is read from, by which it is told from formats with the same others. Only rows
    whose ``where`` columns hold the values stated are requests of the measurement; the others are passed over.
    ``notice`` is what is assumed of them.
    """

    kind: FileKind
    columns: Columns
    source: str
    marks: frozenset[str] = frozenset()
    where: tuple[tuple[str, str], ...] = ()
    notice: str | None = None


FORMATS: dict[str, TraceFormat] = {
    "azure2023": TraceFormat(
        "csv",
        Columns("TIMESTAMP", "timestamp", "ContextTokens", "GeneratedTokens"),
        "github.com/Azure/AzurePublicDataset, AzureLLMInferenceDataset2023.md",
    ),
    "mooncake": TraceFormat(
        "jsonl",
        Columns("timestamp", "ms", "input_length", "output_length", hash_ids="hash_ids", block_tokens=512),
        "github.com/kvcache-ai/Mooncake, FAST25-release/README.md; files of it without hash_ids are read too",
    ),
    "qwen-bailian": TraceFormat(
        "jsonl",
        Columns(
            "timestamp",
            "s",
            "input_length",
            "output_length",
            hash_ids="hash_ids",
            block_tokens=16,
            chat="chat_id",
            follows="parent_chat_id",
        ),
        "github.com/alibaba-edu/qwen-bailian-usagetraces-anon, README.md: seconds, blocks of 16 tokens",
        marks=frozenset(("chat_id", "parent_chat_id", "turn")),
    ),
    "dynamo": TraceFormat(
        "jsonl",
        Columns("created_time", "ms", "input_tokens", "output_tokens", hash_ids="hash_ids", block_tokens=512),
        "github.com/ai-dynamo/dynamo, its aliases of Mooncake's names",
    ),
    "aiperf": TraceFormat(
        "jsonl",
        Columns(
            "metadata.request_start_ns",
            "ns",
            "metrics.input_sequence_length.value",
            "metrics.output_sequence_length.value",
        ),
        "github.com/ai-dynamo/aiperf, profile_export.jsonl; requests of its warm-up are passed over",
        where=(("metadata.benchmark_phase", "profiling"),),
    ),
    "vllm-bench": TraceFormat(
        "json",
        Columns("start_times", "s", "input_lens", "output_lens"),
        "github.com/vllm-project/vllm, vllm/benchmarks/serve.py: what vllm bench serve saves with --save-detailed",
    ),
    "vllm-bench-rate": TraceFormat(
        "json",
        Columns("mean_start_times", "s", "input_lens", "output_lens"),
        "the same without the times at which requests were sent",
        notice="it does not say when requests were sent: they are spread evenly at the rate that it states",
    ),
    "guidellm": TraceFormat(
        "json",
        Columns("request_start_time", "s", "prompt_tokens", "output_tokens"),
        "github.com/vllm-project/guidellm, the report of one benchmark in JSON; its successful requests",
    ),
    "sharegpt": TraceFormat(
        "json",
        Columns(prompt_tokens="prompt_tokens", output_tokens="output_tokens"),
        "ShareGPT conversations: of each the first two turns, in tokens of four characters",
        marks=frozenset(("conversations",)),
        notice="it holds text and no token counts: four characters are taken for a token",
    ),
    "burstgpt": TraceFormat(
        "csv",
        Columns("Timestamp", "s", "Request tokens", "Response tokens"),
        "github.com/HPMLL/BurstGPT, README.md, Schema; failed requests have 0 response tokens",
    ),
    "vidur": TraceFormat(
        "csv",
        Columns("arrived_at", "s", "num_prefill_tokens", "num_decode_tokens"),
        "github.com/microsoft/vidur, data/processed_traces; arrived_at is absent from files of lengths alone",
    ),
    "csv": TraceFormat("csv", Columns(), "servetwin's own"),
    "jsonl": TraceFormat("jsonl", Columns(), "servetwin's own"),
    "parquet": TraceFormat("parquet", Columns(), "servetwin's own"),
}


def assumed_of(path: Path, trace_format: str) -> tuple[str, ...]:
    """A sentence on what is assumed of a file of a format, if anything is."""
    assumed = FORMATS[trace_format].notice
    return () if assumed is None else (f"{path}: {assumed}.",)
