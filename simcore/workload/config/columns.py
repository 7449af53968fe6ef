"""What the columns of a trace are called, as a user writes it."""

from typing import Literal

from simcore.workload.config.section import Section, Text

FormatName = Literal[
    "auto",
    "azure2023",
    "mooncake",
    "qwen-bailian",
    "dynamo",
    "aiperf",
    "vllm-bench",
    "vllm-bench-rate",
    "guidellm",
    "sharegpt",
    "burstgpt",
    "vidur",
    "csv",
    "jsonl",
    "parquet",
]


class LengthColumns(Section):
    """Which columns (or JSON keys) of a file hold what, and the unit of arrival times."""

    arrival: Text = "arrival_s"
    arrival_unit: Literal["s", "ms", "us", "ns", "timestamp"] = "s"
    prompt_tokens: Text = "prompt_tokens"
    output_tokens: Text = "output_tokens"


class TraceColumns(LengthColumns):
    """The same, and the columns that say who sends a request and what it contains, read only where they are named."""

    tenant: Text | None = None
    priority: Text | None = None
    max_output_tokens: Text | None = None
    hash_ids: Text | None = None
