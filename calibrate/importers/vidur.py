"""Linear layers and collectives profiled by Vidur (github.com/microsoft/vidur, MIT). Times are in milliseconds.

Layers were timed one by one from the host with PyTorch of 2023/24, to a resolution of about a microsecond.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from calibrate.importers.columns import CsvColumns
from calibrate.samples import SampleTable, require_folder
from simcore.core.errors import FileError

ACCELERATORS = {"a100": "a100-sxm-80gb", "h100": "h100-sxm"}
_NETWORKS = {"a100_dgx": "a100-sxm-80gb", "h100_dgx": "h100-sxm"}
"""Only full NVLink domains: the pairwise ones are PCIe cards."""
VERSION = "2024"


def read_profiles(root: Path) -> Iterator[SampleTable]:
    """Everything in ``compute`` and ``network``."""
    require_folder(root, "vidur's folders compute and network")
    for device, accelerator in ACCELERATORS.items():
        for path in sorted((root / "compute" / device).glob("*/*/mlp.csv")):
            yield from read_layers(path, accelerator)
    for network, accelerator in _NETWORKS.items():
        for path in sorted((root / "network" / network).glob("*.csv")):
            yield read_collective(path, accelerator)


def read_layers(path: Path, accelerator: str) -> Iterator[SampleTable]:
    """The GEMMs of a ``mlp.csv``, each with its shape on one rank."""
    file = CsvColumns(path)
    ranks, tokens = file.whole("num_tensor_parallel_workers", least=1), file.whole("num_tokens")
    hidden, width = file.whole("n_embd"), file.whole("n_expanded_embd")
    heads, kv_heads = file.whole("n_head", least=1), file.whole("n_kv_head", least=1)
    head_dim = hidden // heads
    kv_per_rank = np.maximum(kv_heads // ranks, 1)
    has_gate = file.text("use_gated_mlp")
    file.refuse(~np.isin(has_gate, ("True", "False")), "use_gated_mlp", "True or False")
    gated = np.where(has_gate == "True", 2, 1)
    shapes = {
        "attn_pre_proj": ((heads // ranks + 2 * kv_per_rank) * head_dim, hidden),
        "attn_post_proj": (hidden, hidden // ranks),
        "mlp_up_proj": (gated * width // ranks, hidden),
        "mlp_down_proj": (hidden, width // ranks),
    }
    for layer, (n, k) in shapes.items():
        latency_s = file.numbers(f"time_stats.{layer}.median") * 1e-3
        columns = {"dtype": np.full(len(tokens), "fp16"), "tokens": tokens, "n": n, "k": k}
        table = SampleTable("gemm", accelerator, "vidur", VERSION, columns, latency_s, str(path), file.lines)
        yield table.checked()


def read_collective(path: Path, accelerator: str) -> SampleTable:
    """A collective over bytes, each rank's time a row."""
    file = CsvColumns(path)
    operation = path.stem
    per_node = file.whole("devices_per_node", least=1)
    ranks = file.whole("num_workers", least=1)
    if np.any(ranks % per_node):
        line = int(file.lines[np.flatnonzero(ranks % per_node)[0]])
        raise FileError(path, "num_workers is no multiple of devices_per_node", line)
    columns = {
        "operation": np.full(len(ranks), operation),
        "implementation": np.full(len(ranks), "nccl"),
        "nodes": ranks // per_node,
        "ranks_per_node": per_node,
        "bytes": file.whole("size"),
    }
    latency_s = file.numbers(f"time_stats.{operation}.median") * 1e-3
    table = SampleTable("collective", accelerator, "vidur", VERSION, columns, latency_s, str(path), file.lines)
    return table.checked()
