"""NCCL collectives measured by APEX+ (github.com/microsoft/apex_plus, MIT), in microseconds, rounded.

A row of zero kilobytes is a message of less than one; latency there is that of the smallest message.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from calibrate.importers.columns import CsvColumns
from calibrate.samples import SampleTable, require_folder

ACCELERATORS = {"H100-SXM-80GB": "h100-sxm", "H200-SXM-141GB": "h200-sxm"}
_OPERATIONS = {"alltoall": "all_to_all", "sendrecv": "send_recv"}
VERSION = "2024"


def read_collectives(root: Path) -> Iterator[SampleTable]:
    """All collectives of the devices that servetwin has a datasheet of, half precision alone."""
    comm = require_folder(root / "comm", "a folder per device")
    for device in ACCELERATORS:
        for path in sorted((comm / device).glob("*.csv")):
            yield read_collective(path)


def read_collective(path: Path) -> SampleTable:
    """One file: one operation on one device."""
    file = CsvColumns(path)
    operation = _OPERATIONS.get(path.stem, path.stem)
    count = len(file.lines)
    columns = {
        "operation": np.full(count, operation),
        "implementation": np.full(count, "nccl"),
        "nodes": file.whole("num_nodes"),
        "ranks_per_node": file.whole("num_gpus_per_node"),
        "bytes": file.whole("size(kb)", least=0) * 1024,
    }
    latency_s = file.numbers("time(us)") * 1e-6
    accelerator = ACCELERATORS[path.parent.name]
    table = SampleTable("collective", accelerator, "apex", VERSION, columns, latency_s, str(path), file.lines)
    return table.checked().select(file.text("dtype") == "half")
