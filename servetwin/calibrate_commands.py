"""``servetwin calibrate``: import public kernel measurements, fit them to a profile."""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
import typer

from calibrate.fit.held_out import FITS, fit_and_check, unknown_types
from calibrate.importers import aiconfigurator, apex_plus, llmservingsim, splitwise, vidur
from calibrate.importers.generic import read_samples, write_samples
from calibrate.plausibility import impossible
from calibrate.profile_writer import FittedKind, Origin, check_destination, write_profile
from calibrate.samples import SampleTable, joined
from servetwin.console import say
from simcore.core.errors import InputError, Phrase
from simcore.core.files import writing
from simcore.cost.calibrated.document import NOT_STATED
from simcore.hardware import accelerator_names, load_accelerator

_T = TypeVar("_T")
_NCCL = "nccl"


class SourceName(StrEnum):
    """Where measurements come from."""

    AICONFIGURATOR = "aiconfigurator"
    LLMSERVINGSIM = "llmservingsim"
    VIDUR = "vidur"
    SPLITWISE = "splitwise"
    APEX_PLUS = "apex-plus"


def import_command(
    source: Annotated[SourceName, typer.Argument(help="The project whose measurements to read.")],
    system: Annotated[str | None, typer.Option(help="The device, as the project names it.")] = None,
    root: Annotated[
        Path | None, typer.Option(help="Its folder (or file); an installed aiconfigurator-core if not given.")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="Only what this engine ran (aiconfigurator).")] = None,
    version: Annotated[str | None, typer.Option(help="Only what this version ran (aiconfigurator).")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for one CSV file per kernel kind.")] = Path(
        "samples"
    ),
) -> None:
    """Write public measurements in servetwin's form, one file per kernel kind, accelerator, engine and version.

    Rows of data types that nothing is fitted to are left out, and told. Of aiconfigurator's tables those of kernels
    that engines do not run are left out too.
    """
    groups: dict[tuple[str, str, str, str], list[SampleTable]] = {}
    for table in _read(source, system, root, engine, version):
        known = _fitted_types(table)
        if len(known):
            groups.setdefault((known.accelerator, known.engine, known.version, known.kind), []).append(known)
        else:
            say(f"{table.file}: no samples of kernels that engines run and something is fitted to")
    if not groups:
        field, value = ("--system", system) if root is None else ("--root", str(root))
        raise InputError(field, value, f"a source of measurements of {source} that something is fitted to")
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    for (accelerator, made_by, made_with, kind), tables in groups.items():
        samples = joined(tables)
        path = out / f"{accelerator}.{made_by}-{made_with}.{kind}.csv"
        write_samples(samples, path)
        say(f"{path}: {len(samples):,} samples")


def _fitted_types(table: SampleTable) -> SampleTable:
    """The samples of a table but for those of types that nothing is fitted to, which are told."""
    unknown = unknown_types(table) if table.kind in FITS else {}
    for (column, name), rows in unknown.items():
        say(f"{table.file}: {rows.sum():,} samples of {column} {name} left out, since nothing is fitted to it")
    return table.select(~np.any(list(unknown.values()), axis=0)) if unknown else table


def fit_command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Samples as 'calibrate import' writes them.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the profile.")],
    source: Annotated[str, typer.Option(help="Who measured: put into the profile.")] = "own measurements",
    licence: Annotated[str, typer.Option(help="The licence of the measurements.")] = "not stated",
    date: Annotated[str, typer.Option(help="The day when they were made or read.")] = NOT_STATED,
) -> None:
    """Fit samples of one accelerator to a profile, and say how well it predicts what it has not seen.

    Files of kinds that nothing is fitted to are left out, and named.
    """
    check_destination(out)
    by_kind: dict[str, list[SampleTable]] = {}
    left_out: list[tuple[Path, str]] = []
    for file in files:
        samples = read_samples(file)
        if samples.kind in FITS:
            by_kind.setdefault(samples.kind, []).append(samples)
        else:
            left_out.append((file, samples.kind))
    if not by_kind:
        file, kind = left_out[0]
        raise InputError(f"{file}: kind", kind, f"one of {', '.join(FITS)}")
    for file, kind in left_out:
        say(f"{file}: left out, since nothing is fitted to {kind}")
    read = [part for parts in by_kind.values() for part in parts]
    accelerators = sorted({part.accelerator for part in read})
    if len(accelerators) > 1:
        raise InputError("the files' accelerator", ", ".join(accelerators), "the same in all files")
    engine, version = _engine_of(read)
    kinds = {}
    for kind, parts in by_kind.items():
        versions = sorted({f"{part.engine} {part.version}" for part in parts})
        kinds[kind] = FittedKind(fit_and_check(joined(parts)), Origin(source, licence, date), versions)
        for group, errors in kinds[kind].checked.errors.items():
            say(
                f"{kind} ({group}): {errors.points:,} held-out points, median {errors.median:.1%}, "
                f"P90 {errors.p90:.1%}, bias {errors.bias:+.1%}"
            )
        for part in parts:
            _tell_of_impossible(part)
    write_profile(out, accelerators[0], engine, version, kinds)
    say(f"Profile: {out}")


def _tell_of_impossible(samples: SampleTable) -> None:
    if samples.accelerator not in accelerator_names():
        return
    rows = impossible(samples, load_accelerator(samples.accelerator))
    if rows.any():
        line = int(samples.lines[rows.argmax()])
        say(
            f"Warning: {rows.sum():,} of {len(samples):,} samples in {samples.file} are faster than the datasheet of "
            f"{samples.accelerator} lets them be, the first on line {line}; prices fitted to them are too low."
        )


def _engine_of(tables: list[SampleTable]) -> tuple[str, str]:
    """The engine and version that ran the kernels; collectives of NCCL go with any."""
    found = sorted({(part.engine, part.version) for part in tables})
    nccl = {(part.engine, part.version) for part in tables if (part.engine, part.kind) == (_NCCL, "collective")}
    engines = [one for one in found if one not in nccl] or found
    if len(engines) > 1:
        names = ", ".join(f"{engine} {version}" for engine, version in engines)
        raise InputError("the files' engine and version", names, "one in all files, besides those of NCCL")
    return engines[0]


def _read(
    source: SourceName, system: str | None, root: Path | None, engine: str | None, version: str | None
) -> Iterable[SampleTable]:
    if source is SourceName.AICONFIGURATOR:
        found = aiconfigurator.find_root(root)
        return aiconfigurator.read_system(found, _needed("--system", system), engine, version)
    folder = _needed("--root", root)
    if source is SourceName.LLMSERVINGSIM:
        return llmservingsim.read_device(folder, _needed("--system", system))
    if source is SourceName.VIDUR:
        return vidur.read_profiles(folder)
    if source is SourceName.SPLITWISE:
        return splitwise.read_passes(folder)
    return apex_plus.read_collectives(folder)


def _needed(option: str, value: _T | None) -> _T:
    if value is None:
        raise InputError(option, Phrase("not given"), "one for this source")
    return value
