"""How noisy measured GEMMs are: parts of kernel-fits.md."""

from collections.abc import Iterator
from importlib import resources
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from calibrate.fit.grids import on_grid
from calibrate.importers import aiconfigurator
from simcore.cost.calibrated import KernelProfile
from simcore.cost.calibrated.gemm import GEMM_KEYS
from simcore.cost.calibrated.table import parse_table

_ENOUGH_GEMMS = 1000
_WIDTHS = (512, 768, 1024, 1536, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 10240, 12288, 16384)
_TOKENS = (64, 128, 256, 512, 1024, 2048, 4096)


def jumps(data: Path) -> Iterator[str]:
    """How far GEMMs of almost the same size are apart: no smooth fit comes nearer than half of that."""
    file = data / "aiconfigurator" / "h200_sxm" / "gemm" / "vllm" / "0.19.0" / "gemm_perf.parquet"
    samples = aiconfigurator.read_table(file, "h200_sxm")
    samples = samples.select(samples.columns["dtype"] == "bf16")
    (tokens, _, _), logs = on_grid(samples, ["tokens", "n", "k"])
    pairs = [i for i, count in enumerate(tokens[:-1]) if count >= 64 and tokens[i + 1] == count + 1]
    apart = np.abs(np.expm1(logs[np.array(pairs) + 1] - logs[pairs]))
    apart = apart[~np.isnan(apart)]
    median, p90 = np.median(apart), np.quantile(apart, 0.9)
    yield "Measurements jump themselves: one token more changes a GEMM in bf16 on the H200, of 64 tokens or"
    yield f"more, by {median:.1%} in the median and by {p90:.1%} or more in one of ten shapes."


def two_engines(profiles: list[KernelProfile]) -> Iterator[str]:
    """How far two profiles of an accelerator are apart on GEMMs in bf16, which all engines leave to cuBLAS."""
    yield "| accelerator | profiles | GEMMs | median | P90 | noise in common |"
    yield "|---|---|---:|---:|---:|---:|"
    by_accelerator: dict[str, list[KernelProfile]] = {}
    for profile in profiles:
        by_accelerator.setdefault(profile.accelerator, []).append(profile)
    for accelerator, found in by_accelerator.items():
        for one, other in combinations(found, 2):
            ours, theirs = _bf16_gemms(one), _bf16_gemms(other)
            common = sorted(ours.keys() & theirs.keys())
            if len(common) < _ENOUGH_GEMMS:
                continue
            apart = np.log([ours[gemm] / theirs[gemm] for gemm in common])
            apart = np.abs(apart - np.median(apart))
            median, p90 = np.median(apart), np.quantile(apart, 0.9)
            noises = [rankdata(_corners(profile)) for profile in (one, other)]
            names = f"{one.engine} {one.version}, {other.engine} {other.version}"
            alike = np.corrcoef(*noises)[0, 1]
            yield f"| {accelerator} | {names} | {len(common):,} | {median:.1%} | {p90:.1%} | {alike:.2f} |"


def _corners(profile: KernelProfile) -> np.ndarray:
    """What GEMMs in bf16 are off, by four at a time whose n and k differ (``calibrate/fit/noise.py``)."""
    prices = [[profile.gemm("bf16", n, k) for k in _WIDTHS] for n in _WIDTHS]
    logs = np.log([[[price.seconds(tokens) for tokens in _TOKENS] for price in row if price] for row in prices])
    return np.ravel(logs[:-1, :-1] - logs[1:, :-1] - logs[:-1, 1:] + logs[1:, 1:])


def _bf16_gemms(profile: KernelProfile) -> dict[tuple[int, int, int], float]:
    """Seconds of the GEMMs in bf16 that a profile has knots of, by tokens, n and k."""
    folder = resources.files("hardware_profiles") / profile.accelerator / f"{profile.engine}-{profile.version}"
    table = parse_table(folder / "gemm.csv", GEMM_KEYS)
    found = {}
    for (dtype, multiple_of, n, k), latency_s in zip(table.rows, table.latency_s, strict=True):
        if (dtype, int(multiple_of)) == ("bf16", 1):
            for tokens, value in zip(table.knots.tolist(), latency_s.tolist(), strict=True):
                if not np.isnan(value):
                    found[int(tokens), int(n), int(k)] = value
    return found
