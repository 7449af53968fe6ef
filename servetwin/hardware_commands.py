"""``servetwin hardware show`` and ``diff``: what a profile knows, and how far two of them are apart."""

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from calibrate.agreement import agreement
from servetwin.console import console, plain_table, print_table
from simcore.core.errors import InputError, nearest_name
from simcore.cost.calibrated import KernelProfile, available_profiles
from simcore.cost.calibrated.document import PROFILE_FILE
from simcore.hardware import Accelerator, accelerator_names, load_accelerator

_FOLDER = "profile"

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="An accelerator, a profile (h100-sxm/vllm-0.19.0), or a folder of either or a calibration."
    ),
]


def show(name: Name) -> None:
    """Show an accelerator's ceilings, or what a kernel profile knows.

    That is its held-out errors, what was measured, and where it is from.
    """
    to = console()
    if name in accelerator_names() or Path(name).suffix in (".yaml", ".yml"):
        accelerator = load_accelerator(name)
        _print_ceilings(accelerator)
        known = available_profiles(name) if name in accelerator_names() else ()
        to.print(f"Profiles: {', '.join(known) or 'none'}")
        return
    folder = profile_folder(name)
    profile = KernelProfile(folder)
    of_profile = _accelerator_of(profile, folder)
    if of_profile is not None:
        _print_ceilings(of_profile)
    to.print(f"Profile {profile.name}")
    for key, value in profile.machine.items():
        to.print(f"  {key}: {value}", soft_wrap=True, markup=False)
    if profile.host is not None:
        host = profile.host
        to.print(
            f"  host: {host.step_s * 1e6:.0f} us a step, {host.per_request_s * 1e6:.1f} us a request, median error "
            f"{host.median_error:.1%} of {host.steps} steps"
        )
    table = plain_table("kernels", "of", "samples", "held out", "median", "P90", "bias", "measured")
    for row in _rows(profile):
        table.add_row(*row)
    print_table(table, to)
    for kind, provenance in profile.provenance.items():
        to.print(f"{kind}: {provenance.source}, {provenance.date}, {provenance.licence}", soft_wrap=True, markup=False)


def diff(first: Name, second: Name) -> None:
    """Show how far two kernel profiles are apart.

    Prices are compared kernel by kernel, at the shapes that both measured.
    """
    found, alone = agreement(profile_folder(first), profile_folder(second))
    table = plain_table("kernels", "points", "median", "P90", "second over first")
    for one in found:
        table.add_row(one.kind, f"{one.points:,}", f"{one.median:.1%}", f"{one.p90:.1%}", f"{one.bias:+.1%}")
    print_table(table, console())
    middle = sorted(one.median for one in found)[len(found) // 2]
    typer.echo(f"Median over kernels: {middle:.1%}")
    if alone:
        typer.echo(f"In one alone: {', '.join(alone)}")


def profile_folder(name: str) -> Traversable | Path:
    """The folder of a profile by name or path; raises ``InputError`` for one that is not there."""
    path = Path(name)
    for folder in (path / _FOLDER, path):
        if (folder / PROFILE_FILE).is_file():
            return folder
    accelerator, _, profile = name.partition("/")
    known = [f"{one}/{other}" for one in accelerator_names() for other in available_profiles(one)]
    if name not in known:
        raise InputError("profile", name, "an accelerator, a profile, or a folder with one", nearest_name(name, known))
    return resources.files("hardware_profiles") / accelerator / profile


def _accelerator_of(profile: KernelProfile, folder: Traversable | Path) -> Accelerator | None:
    if profile.accelerator in accelerator_names():
        return load_accelerator(profile.accelerator)
    datasheet = Path(str(folder)).parent / f"{profile.accelerator}.yaml"
    return load_accelerator(str(datasheet)) if datasheet.is_file() else None


def _print_ceilings(accelerator: Accelerator) -> None:
    to = console()
    to.print(f"{accelerator.name}: {accelerator.title}", markup=False)
    rates = ", ".join(f"{name} {rate / 1e12:,.4g}" for name, rate in accelerator.peak_flops_per_s.items())
    to.print(f"  peak rates: {rates} (10^12 operations/s)")
    to.print(f"    {accelerator.sources['peak_flops_per_s']}", soft_wrap=True, markup=False)
    to.print(f"  memory: {accelerator.memory_bandwidth_bytes_per_s / 1e9:,.4g} GB/s, "
             f"{accelerator.memory_bytes / 1e9:,.4g} GB")  # fmt: skip
    to.print(f"    {accelerator.sources['memory_bandwidth_bytes_per_s']}", soft_wrap=True, markup=False)


def _rows(profile: KernelProfile) -> Iterator[tuple[str, ...]]:
    for kind, errors in profile.errors.items():
        ranges = ", ".join(
            f"{name} {low:,}-{high:,}" for name, (low, high) in profile.ranges[kind].items() if low < high
        )
        for place, (group, of) in enumerate(errors.items()):
            samples = f"{profile.provenance[kind].samples:,}" if place == 0 else ""
            figures = f"{of.median:.1%}", f"{of.p90:.1%}", f"{of.bias:+.1%}"
            yield kind if place == 0 else "", group, samples, f"{of.points:,}", *figures, ranges if place == 0 else ""
