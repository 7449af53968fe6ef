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
    """Column of arrival times."""
    arrival_unit: Literal["s", "ms", "us", "ns", "timestamp"] = "s"
    """Unit of arrival times: ``s``, ``ms``, ``us``, ``ns``, or ``timestamp`` (date and time)."""
    prompt_tokens: Text = "prompt_tokens"
    """Column of prompt lengths."""
    output_tokens: Text = "output_tokens"
    """Column of output lengths."""


class TraceColumns(LengthColumns):
    """The same, and the columns that say who sends a request and what it contains, read only where they are named."""

    tenant: Text | None = None
    """Column of tenants."""
    priority: Text | None = None
    """Column of priorities."""
    max_output_tokens: Text | None = None
    """Column of the limits that clients set."""
    hash_ids: Text | None = None
    """Column of lists of hash ids. In a CSV file a list is written as ``"[3, 4, 9]"``."""
    chat: Text | None = None
    """Column of a request's own name, for ``turns``."""
    follows: Text | None = None
    """Column of the name of the request whose answer it goes on from; empty or -1 where there is none."""
