"""Contents token by token, slowly, to hold the columns against."""

from typing import Any

import pydantic

from simcore.core.content import Content
from simcore.workload import Sessions, WorkloadConfig, build_workload
from simcore.workload.in_memory import concatenate


class Scenario(pydantic.BaseModel):
    workload: WorkloadConfig


def build(base_dir, seed=0, **workload: Any):
    return build_workload(Scenario(workload=workload).workload, seed, base_dir)


def all_requests(workload):
    return workload.requests if isinstance(workload, Sessions) else concatenate(list(workload.batches()))


def tokens_of(content: Content) -> list[int]:
    return [run.first + place for run in content.prompt for place in range(run.tokens)]


def texts(requests) -> list[tuple[list[int], list[int]]]:
    """The tokens of each prompt, and of each output."""
    return [
        (tokens_of(content), list(range(content.output_first, content.output_first + output)))
        for content, output in zip(requests.contents, requests.output_tokens.tolist(), strict=True)
    ]
