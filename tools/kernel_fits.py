"""Write docs/results/kernel-fits.md: ``python tools/kernel_fits.py --data DIR [--check]``.

The tables come from the profiles that servetwin ships; the checks at the end need the measurements in ``--data`` (the
folder ``profiles`` of the public data).
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this checkout, not another that may be installed

from simcore.cost.calibrated import ErrorQuantiles, KernelProfile, available_profiles, load_profile
from simcore.hardware import accelerator_names
from tools.assumption_checks import linear_attention, mixed, other_experts, prefixes, unequal_contexts, windows
from tools.expert_formats import expert_formats
from tools.kernel_noise import jumps, two_engines
from tools.page_template import filled

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "results" / "kernel-fits.md"
_MEDIAN, _P90 = 0.03, 0.10
_ENOUGH_REPEATS = 100
_LEAST_WITHIN = {"within_3_percent": 0.5, "within_10_percent": 0.9}


def document(data: Path) -> str:
    """The whole document."""
    profiles = [load_profile(name, found) for name in accelerator_names() for found in available_profiles(name)]
    parts = {
        "by_accelerator": _by_accelerator(profiles),
        "by_profile": _by_profile(profiles),
        "misses": _misses(profiles),
        "jumps": jumps(data),
        "two_engines": two_engines(profiles),
        "repeats": _repeats(profiles),
        "unequal_contexts": unequal_contexts(profiles),
        "windows": windows(profiles),
        "prefixes": prefixes(data),
        "mixed": mixed(data),
        "other_experts": other_experts(data),
        "expert_formats": expert_formats(profiles),
        "linear_attention": linear_attention(),
    }
    return filled(
        Path(__file__).with_suffix(".md"),
        median=f"{_MEDIAN:.0%}",
        p90=f"{_P90:.0%}",
        enough_repeats=str(_ENOUGH_REPEATS),
        **{name: "\n".join(lines) for name, lines in parts.items()},
    )


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


def _by_profile(profiles: list[KernelProfile]) -> Iterator[str]:
    """The points of each profile, by kernel kind and group."""
    yield "| accelerator | profile | kernel | points | median | P90 | bias | noise | |"
    yield "|---|---|---|---:|---:|---:|---:|---:|---|"
    for profile in profiles:
        for kind, by_group in profile.errors.items():
            for group, errors in by_group.items():
                if group != "all" and len(by_group) == 2:
                    continue
                name = kind.replace("_", " ") if group == "all" else f"· {group}"
                noise = profile.noise[kind].get(group)
                missed = _verdict(errors, noise) if group == "all" else ""
                shown = "" if noise is None else f"{noise[0]:.1%} / {noise[1]:.1%}"
                yield (
                    f"| {profile.accelerator} | {profile.engine} {profile.version} | {name} | {errors.points:,} "
                    f"| {errors.median:.1%} | {errors.p90:.1%} | {errors.bias:+.1%} | {shown} | {missed} |"
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
    yield "A point predicted from two neighbours, each as noisy as itself, errs by the root of 1 + 1/2 times the"
    yield f"noise: {expected:.2f}. For the rows that miss a target the P90 is so many times the noise:"
    yield ""
    yield from (f"- {name}: {share:.2f}" for name, share in shares.items())


def _repeats(profiles: list[KernelProfile]) -> Iterator[str]:
    """Which tables were taken together, and how alike they are."""
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
