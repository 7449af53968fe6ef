"""Whole forward passes of splitwise-sim (github.com/Mutinifni/splitwise-sim, MIT), in milliseconds.

They are no kernels: no fit is made of them, they serve to check prices of whole steps.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from calibrate.importers.columns import CsvColumns
from calibrate.samples import SampleTable

ACCELERATORS = {"a100-80gb": "a100-sxm-80gb", "h100-80gb": "h100-sxm"}
"""Power-capped variants are left out: no datasheet describes them."""
VERSION = "2023"
FILE = "perf_model.csv"


def read_passes(path: Path) -> Iterator[SampleTable]:
    """Prompt passes and token passes of each device, from ``perf_model.csv`` or the folder that holds it."""
    path = path / FILE if path.is_dir() else path
    file = CsvColumns(path)
    hardware = file.text("hardware")
    common = {
        "model": file.text("model"),
        "tensor_parallel": file.whole("tensor_parallel"),
        "batch": file.whole("batch_size"),
        "prompt_tokens": file.whole("prompt_size"),
    }
    output = {"output_tokens": file.whole("token_size")}
    passes = (("prompt_pass", "prompt_time", common), ("token_pass", "token_time", {**common, **output}))
    for device, accelerator in ACCELERATORS.items():
        chosen = hardware == device
        for kind, time, columns in passes:
            latency_s = file.numbers(time) * 1e-3
            table = SampleTable(kind, accelerator, "splitwise", VERSION, columns, latency_s, str(path), file.lines)
            if chosen.any():
                yield table.select(chosen & np.isfinite(latency_s)).checked()
