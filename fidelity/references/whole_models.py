"""splitwise-sim: prompt and token times of whole models (Patel et al., Splitwise, ISCA 2024)."""

from collections import defaultdict
from pathlib import Path
from statistics import median

from fidelity.case import Case, Refusal
from fidelity.known_names import known_names
from fidelity.references.batch import batch_document
from simcore.core.errors import FileError
from simcore.workload.traces.csv_file import column_names, rows

_COLUMNS = (
    "model",
    "hardware",
    "tensor_parallel",
    "prompt_size",
    "batch_size",
    "token_size",
    "prompt_time",
    "token_time",
)


def whole_models(path: Path) -> list[Case | Refusal]:
    """One case per configuration; raises ``FileError``, naming file and line, for a row that cannot be read."""
    missing = [name for name in _COLUMNS if name not in column_names(path)]
    if missing:
        raise FileError(path, f"has no column {missing[0]!r}")
    times: defaultdict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    for line, values in rows(path, _COLUMNS):
        *configuration, prompt_ms, token_ms = map(str, values)
        try:
            times[tuple(configuration)].append((float(prompt_ms), float(token_ms)))
            [int(size) for size in configuration[2:]]
        except ValueError:
            raise FileError(path, "holds something that is no number", line) from None
    return [_case(configuration, repeated) for configuration, repeated in times.items()]


def _case(configuration: tuple[str, ...], repeated: list[tuple[float, float]]) -> Case | Refusal:
    names = known_names()
    model, hardware, *sizes = configuration
    ranks, prompt_tokens, batch, output_tokens = map(int, sizes)
    labels = {
        "model": names.models.get(model, model),
        "accelerator": names.accelerators.get(hardware, hardware),
        "tensor_parallel": str(ranks),
        "batch": str(batch),
        "lengths": f"{prompt_tokens}/{output_tokens}",
    }
    name = " ".join(configuration)
    if model not in names.models:
        return Refusal(name, labels, f"unknown model {model}")
    if hardware not in names.accelerators:
        return Refusal(name, labels, f"unknown accelerator {hardware}")
    document = batch_document(
        labels["model"], "vllm-v1", labels["accelerator"], ranks, batch, (prompt_tokens, output_tokens)
    )
    # The engine measured had no chunks: all prompts of the batch in one step.
    document["scheduler"] = {"batching": {"max_batched_tokens": batch * prompt_tokens}}
    document["memory"]["num_gpu_blocks"] = 2 + batch * -(-(prompt_tokens + output_tokens) // 16)
    prompt_ms, token_ms = (median(column) for column in zip(*repeated, strict=True))
    return Case(name, labels, document, {"ttft_s.mean": prompt_ms / 1e3, "tpot_s.mean": token_ms / 1e3})
