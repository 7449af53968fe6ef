"""Makes ``hardware_profiles/collectives/alpha_beta.yaml``: ``python -m calibrate.ship_collectives --data DIR``.

``--data`` holds the public profiles by project (apex_plus, vidur). Collectives of kernel profiles that come with
servetwin are read from those.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from calibrate.fit.alpha_beta import CollectiveSamples, fit_constants, held_out_errors
from calibrate.importers.columns import CsvColumns
from calibrate.ship import PROFILES
from simcore.cost.calibrated.collectives import COLLECTIVE_KEYS
from simcore.cost.calibrated.table import parse_table
from simcore.cost.collectives import CONSTANTS_FILE, NETWORK, NVLINK, OPERATIONS, PCIE, PCIE_HOST
from simcore.hardware import load_accelerator

NVLINK_PROFILES = ("a100-sxm-80gb/vllm-0.14.0", "h100-sxm/vllm-0.19.0", "h200-sxm/vllm-0.19.0", "b200/vllm-0.24.0")
PCIE_PROFILES = {"rtx-pro-6000-blackwell/vllm-0.24.0": 8, "l40s/vllm-0.24.0": 2}
"""With the most ranks taken. In the machine of the L40S four and eight ranks talk across host bridges, at 0.16 and 0.05
of the link's rate: no property of PCIe between devices."""
PCIE_3_BYTES_PER_S = 16e9
"""16 lanes x 8 GT/s / 8, raw: of the V100 PCIe."""
NDR_BYTES_PER_S = 50e9
"""One adapter of 400 Gbit/s for each GPU of a DGX H100 (NVIDIA DGX H100 datasheet, 2022; recalled)."""
_APEX = "github.com/microsoft/apex_plus, commit 8769096536a34e8b3010fd444021f13858663a93 (MIT)"
_VIDUR = "github.com/microsoft/vidur, commit 7d47513363ec447a741ac5e47241580b47724fbf (MIT)"
_SIGNIFICANT = 4


def entries(data: Path) -> Iterator[dict[str, Any]]:
    """The fitted constants of every kind of link and operation."""
    for topology, profiles in ((NVLINK, dict.fromkeys(NVLINK_PROFILES, 8)), (PCIE, PCIE_PROFILES)):
        for operation in OPERATIONS[:-1]:
            yield _entry(topology, _shipped(profiles, operation), f"nccl in {', '.join(profiles)}")
    apex = data / "apex_plus" / "comm"
    linked = [("H100-SXM-80GB", 450e9), ("H200-SXM-141GB", 450e9)]
    sends = _joined([_apex(apex / device / "sendrecv.csv", rate, "send_recv") for device, rate in linked])
    yield _entry(NVLINK, sends, f"{_APEX}: H100 SXM, H200 SXM")
    pairs = _shipped(PCIE_PROFILES, "all_to_all")
    pairs = pairs.select(pairs.ranks == 2)
    halves = CollectiveSamples("send_recv", pairs.ranks, pairs.bytes / 2, pairs.link_bytes_per_s, pairs.latency_s)
    yield _entry(PCIE, halves, f"all-to-all of two ranks, a send of half of it each way, in {', '.join(PCIE_PROFILES)}")
    names = {"all_to_all": "alltoall", "send_recv": "sendrecv"}
    for operation in OPERATIONS:
        path = apex / "V100-PCIE-16GB" / f"{names.get(operation, operation)}.csv"
        found = _apex(path, PCIE_3_BYTES_PER_S, operation)
        yield _entry(PCIE_HOST, found, f"{_APEX}: V100 PCIe, taken to be staged in host memory by the rate it reaches")
    network = _vidur(data / "vidur" / "network" / "h100_dgx" / "send_recv.csv")
    for operation in OPERATIONS:
        of_sends = _entry(NETWORK, network, f"{_VIDUR}: h100_dgx, between nodes; rate of the adapter recalled")
        if operation != "send_recv":
            # Every step of a ring is a send; nothing is launched anew.
            of_sends |= {"operation": operation, "step_s": of_sends["launch_s"], "launch_s": 0.0}
            of_sends["source"] += "; derived from sends, not measured"
            del of_sends["residuals"]
        yield of_sends


def _entry(topology: str, samples: CollectiveSamples, source: str) -> dict[str, Any]:
    found, errors = fit_constants(samples), held_out_errors(samples)
    return {
        "topology": topology,
        "operation": samples.operation,
        "launch_s": _rounded(found.launch_s),
        "step_s": _rounded(found.step_s),
        "efficiency": _rounded(found.efficiency),
        "ranks": [int(samples.ranks.min()), int(samples.ranks.max())],
        "bytes": [int(samples.bytes.min()), int(samples.bytes.max())],
        "residuals": {
            "points": errors.points,
            "median": _rounded(errors.median),
            "p90": _rounded(errors.p90),
            "bias": _rounded(errors.bias),
            "quantiles": [_rounded(value) for value in errors.quantiles],
        },
        "source": source,
    }


def _shipped(profiles: dict[str, int], operation: str) -> CollectiveSamples:
    parts = []
    for name, most_ranks in profiles.items():
        accelerator = load_accelerator(name.partition("/")[0])
        rate = accelerator.interconnect_bytes_per_s or accelerator.pcie_bytes_per_s
        table = parse_table(PROFILES / name / "collective.csv", COLLECTIVE_KEYS)
        for (found, implementation, nodes, ranks), latency_s in zip(table.rows, table.latency_s, strict=True):
            if (found, implementation, nodes) == (operation, "nccl", 1) and int(ranks) <= most_ranks:
                known = ~np.isnan(latency_s)
                parts.append(_samples(operation, int(ranks), table.knots[known], rate, latency_s[known]))
    return _joined(parts)


def _apex(path: Path, rate: float, operation: str) -> CollectiveSamples:
    """Half precision within a node; a row of zero kilobytes, less than one, is left out."""
    file = CsvColumns(path)
    chosen = (file.text("dtype") == "half") & (file.text("num_nodes") == "1")
    per_node, sizes = file.text("num_gpus_per_node"), file.numbers("size(kb)") * 1024
    parts = []
    for ranks in (2, 4, 8):
        rows = chosen & (per_node == str(ranks)) & (sizes > 0)
        if rows.any():
            parts.append(_samples(operation, ranks, sizes[rows], rate, file.numbers("time(us)")[rows] * 1e-6))
    return _joined(parts)


def _vidur(path: Path) -> CollectiveSamples:
    """Sends from node to node, the median of each rank."""
    file = CsvColumns(path)
    rows = file.whole("devices_per_node") == 1
    seconds = file.numbers("time_stats.send_recv.median")[rows] * 1e-3
    return _samples("send_recv", 2, file.numbers("size")[rows], NDR_BYTES_PER_S, seconds)


def _samples(operation: str, ranks: int, sizes: Any, rate: float, latency_s: Any) -> CollectiveSamples:
    count = len(sizes)
    return CollectiveSamples(operation, np.full(count, ranks), sizes, np.full(count, rate), latency_s)


def _joined(parts: list[CollectiveSamples]) -> CollectiveSamples:
    names = ("ranks", "bytes", "link_bytes_per_s", "latency_s")
    return CollectiveSamples(
        parts[0].operation, *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{_SIGNIFICANT}g}")


def main() -> None:
    """Fit and write all constants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    found = list(entries(parser.parse_args().data))
    for entry in found:
        errors = entry.get("residuals")
        if errors is None:
            continue
        print(f"{entry['topology']} {entry['operation']}: median {errors['median']:.1%}, P90 {errors['p90']:.1%}")
    document = {"licences": "Apache-2.0 (aiconfigurator), MIT (apex_plus, vidur)", "entries": found}
    path = PROFILES / CONSTANTS_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(document, sort_keys=False, width=120), encoding="utf-8")


if __name__ == "__main__":
    main()
