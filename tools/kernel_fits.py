"""Write docs/results/kernel-fits.md: ``python tools/kernel_fits.py --data DIR [--check]``.

The tables come from the profiles that servetwin ships; the checks at the end need the measurements in ``--data`` (the
folder ``profiles`` of the public data).
"""

import argparse
import sys
from collections.abc import Iterator
from importlib import resources
from itertools import combinations, product
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this checkout, not another that may be installed

from calibrate.fit.grids import on_grid
from calibrate.importers import aiconfigurator
from simcore.cost.assumptions import ROUTING
from simcore.cost.calibrated import ErrorQuantiles, KernelProfile, available_profiles, load_profile
from simcore.cost.calibrated.gemm import GEMM_KEYS
from simcore.cost.calibrated.table import parse_table
from simcore.hardware import accelerator_names
from tools.assumption_checks import linear_attention, mixed, other_experts, prefixes, unequal_contexts, windows

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "results" / "kernel-fits.md"
_MEDIAN, _P90 = 0.03, 0.10
_ENOUGH_PRODUCTS = 1000
_ENOUGH_REPEATS = 100
_EXPERT_TOKENS = (16, 128, 1024, 8192)
_SPLITS = (1, 2, 4, 8)
_WIDTHS = (512, 768, 1024, 1536, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 10240, 12288, 16384)
_TOKENS = (64, 128, 256, 512, 1024, 2048, 4096)
_HEAD = """# Kernel fits

Made by `tools/kernel_fits.py` from the profiles in `hardware_profiles/`; [calibrate.md](../guides/calibrate.md) says
how they are made. Every fifth grid point along every axis was left out, the rest fitted, and the points left out
priced by the code that the simulator runs. Errors are relative to the measurement; the bias is the mean of log(price
/ measurement). The target is a median of 3% and a P90 of 10% for each kernel kind and accelerator: half of the points
within 3% and nine tenths within 10%. Profiles of one accelerator that share a table each count its points. Shipped
tables are fits of all points.

A point measured several times counts once, at the geometric mean of the faster half, the middle one included: what else
a machine does holds kernels up, and never makes them faster. Tables of other releases or engines that hold the same
kernels are repeats, see below. Left out of fits and of these errors are vLLM's products in fp8 on the B200 that took
half as long again as the same of more tokens, which a launch may be padded to, and SGLang's launches of linear
attention on the H200 that took longer than on the H100: something else held them up; of collectives those launched
alone, small ones of which take as long as launching them, and sums of 8-bit values, which engines do not add.
"""
_BY_PROFILE = """## By profile

The same points held to the target profile by profile, where quantiles are interpolated between points. The noise,
median and P90, is what these points are off by themselves. Most were measured once, so it is estimated from neighbours
(`calibrate/fit/noise.py`): of four at the corners of a rectangle of two axes, half of what the sum of one diagonal of
logarithms differs from the other, for the pair of axes where that is least. Whatever one axis does alone cancels,
changes of kernels included. It is in the point left out as well as in those that it is predicted from, so errors cannot
be less for long; where it is above every target that is missed, the miss is marked as noise.
"""
_TRIED = """\
On the L40S four and eight ranks talk across host bridges. NCCL changes its protocol between sizes there, at steps that
neighbouring sizes do not tell (a gather of 1 MiB among eight takes less time than one of 512 KiB), and single large
messages took far less than those around let expect. Tried, and left out since none came near the target: steps taken
from the other operations of a ring, one surface over operations and ranks, lines continued from both sides, 8-bit or
16-bit messages alone, two and four ranks alone. SGLang's products in fp8 on the H200 were measured once, on a busy
machine. Tried: the H100's as a base, which are as noisy, older releases scaled to fit, which are other kernels, and
vLLM's."""
_LEAST_WITHIN = {"within_3_percent": 0.5, "within_10_percent": 0.9}
_MISSING = """
## What is not there

- No chunk over a prefix but on the RTX 4090 and the RTX PRO 6000 (vLLM 0.19): elsewhere prefixes are inferred, see
  below.
- No decodes and chunks in one launch but on those two; no unequal contexts anywhere.
- Matrix products in fp8 neither on the A100 nor the RTX 4090, in nvfp4 on the B200 and the RTX PRO 6000 alone. Those in
  int8 and int4 on the H100 and the H200 alone, as TensorRT-LLM 1.0 (on the H200 1.2) runs them. On the A100 and the
  L40S their tables, which `servetwin calibrate import` reads, were measured by a clock of 1.024 us, too coarse to check
  a fit by.
- Experts only for the dtypes listed; none on the RTX 4090, and in the vLLM 0.19 profile of the RTX PRO 6000 those of
  vLLM 0.24, see below. Latent attention on H100, H200 and B200, as SGLang and TensorRT-LLM run it; as vLLM does that of
  prompts alone, out of whole modules.
- Linear attention (the gated delta rule) with the heads of Qwen3.5 and Qwen3-Next, split among 1 to 16 ranks as SGLang
  and vLLM run it, unsplit as TensorRT-LLM does; none on the A100, on the RTX 4090 and in the profiles of vLLM 0.19. Of
  large launches on the H200 under SGLang many were held up and are left out, see below.
- Collectives within a node of 2, 4 or 8 devices; none for the RTX 4090 and in the vLLM 0.19 profile of the RTX PRO
  6000.
- Norms, activations and sampling on the RTX 4090 and the RTX PRO 6000 (vLLM 0.19) alone, norms of queries and keys on
  the latter, each launched as it is written: what engines compile into one kernel was not measured. Rotary embeddings
  were measured without the write of keys and values; they are left to the roofline.
"""


def document(data: Path) -> str:
    """The whole document."""
    profiles = [load_profile(name, found) for name in accelerator_names() for found in available_profiles(name)]
    lines = [_HEAD, *_by_accelerator(profiles), "", _BY_PROFILE]
    lines += [
        "| accelerator | profile | kernel | points | median | P90 | bias | noise | |",
        "|---|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for profile in profiles:
        for kind, by_group in profile.errors.items():
            for group, errors in by_group.items():
                if group != "all" and len(by_group) == 2:
                    continue
                name = kind.replace("_", " ") if group == "all" else f"· {group}"
                noise = profile.noise[kind].get(group)
                missed = _verdict(errors, noise) if group == "all" else ""
                shown = "" if noise is None else f"{noise[0]:.1%} / {noise[1]:.1%}"
                lines.append(
                    f"| {profile.accelerator} | {profile.engine} {profile.version} | {name} | {errors.points:,} "
                    f"| {errors.median:.1%} | {errors.p90:.1%} | {errors.bias:+.1%} | {shown} | {missed} |"
                )
    lines += ["", *_misses(profiles), "", *_jumps(data), "", *_two_engines(profiles), _MISSING]
    lines += ["## Repeats", "", *_repeats(profiles), ""]
    lines += ["## Unequal contexts in a batch", "", *unequal_contexts(profiles)]
    lines += ["", "## Windows that were not measured", "", *windows(profiles)]
    lines += ["", "## Chunks over a prefix", "", *prefixes(data)]
    lines += ["", "## Decodes beside a chunk", "", *mixed(data)]
    lines += ["", "## Experts of another version", "", *other_experts(data)]
    lines += ["", "## Experts of fewer bits", "", *_expert_formats(profiles)]
    lines += ["", "## Linear attention on a busy machine", "", *linear_attention(), ""]
    return "\n".join(lines)


def _by_accelerator(profiles: list[KernelProfile]) -> Iterator[str]:
    """The points of all profiles of an accelerator together, by kernel kind."""
    yield "| accelerator | kernel | profiles | points | within 3% | within 10% | |"
    yield "|---|---|---:|---:|---:|---:|---|"
    found: dict[tuple[str, str], list[ErrorQuantiles]] = {}
    for profile in profiles:
        for kind, by_group in profile.errors.items():
            found.setdefault((profile.accelerator, kind), []).append(by_group["all"])
    for (accelerator, kind), of_all in found.items():
        points = [errors.points for errors in of_all]
        shares = [np.average([getattr(errors, name) for errors in of_all], weights=points) for name in _LEAST_WITHIN]
        missed = any(share < least for share, least in zip(shares, _LEAST_WITHIN.values(), strict=True))
        shown = " | ".join(f"{share:.1%}" for share in shares)
        yield (
            f"| {accelerator} | {kind.replace('_', ' ')} | {len(of_all)} | {sum(points):,} | {shown} "
            f"| {'missed' if missed else ''} |"
        )


def _verdict(errors: ErrorQuantiles, noise: tuple[float, float] | None) -> str:
    if errors.median <= _MEDIAN and errors.p90 <= _P90:
        return ""
    targets = ((errors.median, _MEDIAN), (errors.p90, _P90))
    beside = zip(targets, noise or (0.0, 0.0), strict=True)
    noisy = all(noise_share > target for (error, target), noise_share in beside if error > target)
    return "missed: noise" if noisy else "missed"


def _misses(profiles: list[KernelProfile]) -> Iterator[str]:
    """How far rows that miss a target are from what noise alone makes of a prediction from two neighbours."""
    shares: dict[str, float] = {}
    for profile in profiles:
        for kind, by_group in profile.errors.items():
            noise = profile.noise[kind].get("all")
            if noise is not None and _verdict(by_group["all"], noise):
                name = f"{profile.accelerator}, {profile.engine} {profile.version}, {kind}"
                shares[name] = by_group["all"].p90 / noise[1]
    if not shares:
        return
    expected = np.sqrt(1 + 1 / 2)
    yield f"Predicted from two neighbours as noisy as itself a point errs by {expected:.2f} times the noise, the root"
    yield "of 1 + 1/2. Of what misses a target the P90 is so many times the noise:"
    yield ""
    yield from (f"- {name}: {share:.2f}" for name, share in shares.items())
    yield ""
    yield _TRIED


def _repeats(profiles: list[KernelProfile]) -> Iterator[str]:
    """Which tables were taken together, and how alike they are."""
    yield "Tables whose rows were taken for repeats of another's: of the same operation, by the same kernel as far as"
    yield "the tables name it, in other releases or engines. The ratio is of what they took over what the other took."
    yield "Another kernel shows as a median off 1, or as ratios that come again: those of the same two tables on the"
    yield "H100 and on the H200 go together then, as of SGLang's products in fp8 of up to 1,024 tokens and of those in"
    yield "block-scaled fp8, of which earlier releases hold no repeats therefore. Where they do not, wide P10 and P90"
    yield "say that a machine was busy. Of shapes that one table holds several times, as NCCL's of bytes moved as 8-bit"
    yield "and as 16-bit elements, the slowest are compared with the fastest; where these differ by a fifth, no fit"
    yield f"tells them better. Fewer than {_ENOUGH_REPEATS} shapes in common are not listed."
    yield ""
    yield "| accelerator | profile | kernel | rows | beside | points | P10 | median | P90 |"
    yield "|---|---|---|---|---|---:|---:|---:|---:|"
    for profile in profiles:
        for kind, repeats in profile.repeats.items():
            for repeat in (found for found in repeats if found.shapes >= _ENOUGH_REPEATS):
                yield (
                    f"| {profile.accelerator} | {profile.engine} {profile.version} | {kind.replace('_', ' ')} "
                    f"| {repeat.rows} | {repeat.beside} | {repeat.shapes:,} | {repeat.p10:.2f} | {repeat.median:.2f} "
                    f"| {repeat.p90:.2f} |"
                )


def _jumps(data: Path) -> Iterator[str]:
    """How far products of almost the same size are apart: no smooth fit comes nearer than half of that."""
    file = data / "aiconfigurator" / "h200_sxm" / "gemm" / "vllm" / "0.19.0" / "gemm_perf.parquet"
    samples = aiconfigurator.read_table(file, "h200_sxm")
    samples = samples.select(samples.columns["dtype"] == "bf16")
    (tokens, _, _), logs = on_grid(samples, ["tokens", "n", "k"])
    pairs = [i for i, count in enumerate(tokens[:-1]) if count >= 64 and tokens[i + 1] == count + 1]
    apart = np.abs(np.expm1(logs[np.array(pairs) + 1] - logs[pairs]))
    apart = apart[~np.isnan(apart)]
    median, p90 = np.median(apart), np.quantile(apart, 0.9)
    yield "Measurements jump themselves: one token more changes a matrix product in bf16 on the H200, of 64 tokens or"
    yield f"more, by {median:.1%} in the median and by {p90:.1%} or more in one of ten shapes."


def _two_engines(profiles: list[KernelProfile]) -> Iterator[str]:
    """How far two profiles of an accelerator are apart on products in bf16, which all engines leave to cuBLAS."""
    yield "Matrix products in bf16 were measured on one accelerator for several engines, all of which leave them to"
    yield "cuBLAS. What two profiles say of the same product differs by this much, a constant factor taken off: no fit"
    yield "to the measurements of one day tells those of another better, versions of cuBLAS included. What is called"
    yield "noise above is in a profile's measurements alone: were it the kernels' own, another's would show it too. The"
    yield "last column is the rank correlation of the two, which are less the noisier a profile is."
    yield ""
    yield "| accelerator | profiles | products | median | P90 | noise in common |"
    yield "|---|---|---:|---:|---:|---:|"
    by_accelerator: dict[str, list[KernelProfile]] = {}
    for profile in profiles:
        by_accelerator.setdefault(profile.accelerator, []).append(profile)
    for accelerator, found in by_accelerator.items():
        for one, other in combinations(found, 2):
            ours, theirs = _bf16_products(one), _bf16_products(other)
            common = sorted(ours.keys() & theirs.keys())
            if len(common) < _ENOUGH_PRODUCTS:
                continue
            apart = np.log([ours[product] / theirs[product] for product in common])
            apart = np.abs(apart - np.median(apart))
            median, p90 = np.median(apart), np.quantile(apart, 0.9)
            noises = [rankdata(_corners(profile)) for profile in (one, other)]
            names = f"{one.engine} {one.version}, {other.engine} {other.version}"
            alike = np.corrcoef(*noises)[0, 1]
            yield f"| {accelerator} | {names} | {len(common):,} | {median:.1%} | {p90:.1%} | {alike:.2f} |"


def _expert_formats(profiles: list[KernelProfile]) -> Iterator[str]:
    """What experts of other formats take beside those of bf16: a kernel that is no faster shows in runs too."""
    yield "What experts took as a multiple of what those of the same model took in bf16, the median over the models and"
    yield "tensor-parallel splits that were measured in both, or in bf16 if none was in both: the nearest of the format"
    yield "stands for each then, and no number of shapes is shown. Above 1 a format is slower with half the bytes or"
    yield "fewer: what its kernel was, or whether it was tuned, the tables do not say. A run with such weights is as"
    yield "slow; `pricing.profile` chooses another version where there is one."
    yield ""
    head = " | ".join(f"{tokens:,} tokens" for tokens in _EXPERT_TOKENS)
    yield f"| accelerator | profile | format | shapes | {head} |"
    yield f"|---|---|---|---:|{'---:|' * len(_EXPERT_TOKENS)}"
    slower = []
    for profile in profiles:
        shapes = () if profile.experts is None else profile.experts.measured.get(("bf16", ROUTING), ())
        for dtype in profile.expert_dtypes:
            measured, nearest = [], []
            for shape, split in product(shapes, _SPLITS):
                ours, wide = (profile.moe(name, *shape, split, 1, ROUTING) for name in (dtype, "bf16"))
                if dtype != "bf16" and ours is not None and wide is not None and wide.shape_inside:
                    ratios = [ours.seconds(tokens) / wide.seconds(tokens) for tokens in _EXPERT_TOKENS]
                    (measured if ours.shape_inside else nearest).append(ratios)
            if measured or nearest:
                medians = np.median(measured or nearest, axis=0)
                shown = " | ".join(f"{median:.2f}" for median in medians)
                name = f"{profile.engine} {profile.version}"
                if (medians > 1).all():
                    slower.append(f"{dtype} of {name} on {profile.accelerator}")
                yield f"| {profile.accelerator} | {name} | {dtype} | {len(measured) or ''} | {shown} |"
    if slower:
        yield ""
        yield f"Slower at each of these numbers of tokens: {', '.join(slower)}."


def _corners(profile: KernelProfile) -> np.ndarray:
    """What products in bf16 are off, by four at a time whose n and k differ (``calibrate/fit/noise.py``)."""
    prices = [[profile.gemm("bf16", n, k) for k in _WIDTHS] for n in _WIDTHS]
    logs = np.log([[[price.seconds(tokens) for tokens in _TOKENS] for price in row if price] for row in prices])
    return np.ravel(logs[:-1, :-1] - logs[1:, :-1] - logs[:-1, 1:] + logs[1:, 1:])


def _bf16_products(profile: KernelProfile) -> dict[tuple[int, int, int], float]:
    """Seconds of the products in bf16 that a profile has knots of, by tokens, n and k."""
    folder = resources.files("hardware_profiles") / profile.accelerator / f"{profile.engine}-{profile.version}"
    table = parse_table(folder / "gemm.csv", GEMM_KEYS)
    found = {}
    for (dtype, multiple_of, n, k), latency_s in zip(table.rows, table.latency_s, strict=True):
        if (dtype, int(multiple_of)) == ("bf16", 1):
            for tokens, value in zip(table.knots.tolist(), latency_s.tolist(), strict=True):
                if not np.isnan(value):
                    found[int(tokens), int(n), int(k)] = value
    return found


def main() -> int:
    """Write the document, or compare; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    text = document(asked.data)
    if asked.check:
        return int(DOCUMENT.read_text(encoding="utf-8") != text)
    DOCUMENT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
