"""A file of engine runs of a few rows, each a change of one that can be simulated."""

import csv
from pathlib import Path

from fidelity.case import Case, Refusal
from fidelity.engine_runs import read_engine_runs
from fidelity.harness import case_of

ROW = {
    "id": "one",
    "silicon_data_source": "source_file=2026-04-06.csv; silicon_concurrency=4; wip=False",
    "backend": "vllm",
    "backend_version": "0.18.0",
    "model_path": "meta-llama/Llama-3.1-70B",
    "system": "h200_sxm",
    "precision": "fp8",
    "mode": "agg",
    "isl": "1024",
    "osl": "1024",
    "gemm_quant_mode": "fp8",
    "moe_quant_mode": "fp8",
    "batch_size": "4",
    "tp_size": "2",
    "pp_size": "1",
    "attention_dp_size": "",
    "moe_tp_size": "",
    "moe_ep_size": "0",
    "silicon_ttft_ms": "100",
    "silicon_tpot_ms": "20",
}
QWEN35 = {"backend": "sglang", "model_path": "Qwen/Qwen3.5-397B-A17B", "moe_quant_mode": "fp8_block"}


def write_rows(path: Path, *changes: dict[str, str]) -> Path:
    """Write a row per change and return the path."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ROW)
        writer.writeheader()
        writer.writerows({**ROW, **change} for change in changes)
    return path


def case(folder: Path, **change: str) -> Case | Refusal:
    """What a row with some cells changed is run as."""
    (run,) = read_engine_runs(write_rows(folder / "runs.csv", change))
    return case_of(run)
