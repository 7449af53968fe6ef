"""Makes the profiles that come with servetwin: ``python -m calibrate.ship --data DIR --wheels DIR [NAME]...``.

``--data`` holds the public profiles by project (aiconfigurator, llmservingsim), ``--wheels`` unpacked wheels by
version: 0.12.0 of ``aiconfigurator-core``, 0.10.0 and 0.8.0 of ``aiconfigurator``. ``NAME`` is accelerator/engine-
version; all are made without one. What each is made of stands in ``recipes.py``.
"""

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrate.fit.held_out import FITS, fit_and_check
from calibrate.importers import aiconfigurator, llmservingsim
from calibrate.importers.aiconfigurator_columns import TABLES
from calibrate.latent_module import attention_of
from calibrate.profile_writer import FittedKind, Origin, write_profile
from calibrate.recipes import LLMSERVINGSIM, OLDER_WHEEL, OLDEST_WHEEL, RECIPES, REPOSITORY, WHEEL, Recipe, Tables
from calibrate.repeats import repeats
from calibrate.samples import LATENT_MODULE, SHAPE_COLUMNS, SampleTable, joined
from simcore.core.errors import FileError

PROFILES = Path(__file__).resolve().parent.parent / "hardware_profiles"
_LONGER = 1.05
_INTERRUPTED = 1.5


def make(recipe: Recipe, roots: dict[Origin, Path]) -> None:
    """Import, fit, check and write one profile."""
    by_kind: dict[str, list[tuple[Tables, SampleTable]]] = {}
    for tables in recipe.tables:
        for samples in read(tables, recipe.system, roots[tables.origin]):
            by_kind.setdefault(samples.kind, []).append((tables, trimmed(samples)))
    kinds: dict[str, FittedKind] = {}
    for kind in FITS:
        if kind == "mla_context" and LATENT_MODULE in by_kind:
            gemms = kinds["gemm"].checked.fitted
            by_kind[kind] = [(tables, attention_of(part, gemms)) for tables, part in by_kind[LATENT_MODULE]]
        if kind in by_kind:
            parts = [samples for _, samples in by_kind[kind]]
            versions = sorted({f"{part.engine} {part.version}" for part in parts})
            origin = origin_of([tables for tables, _ in by_kind[kind]])
            found = repeats((name_of(tables), samples) for tables, samples in by_kind[kind])
            kinds[kind] = FittedKind(fit_and_check(joined(parts)), origin, versions, found)
            errors = kinds[kind].checked.errors["all"]
            print(f"{recipe.name} {kind}: median {errors.median:.1%}, P90 {errors.p90:.1%}", flush=True)
    write_profile(PROFILES / recipe.name, recipe.accelerator, recipe.engine, recipe.version, kinds)


def name_of(tables: Tables) -> str:
    """A table's place in its source, without the file's name."""
    return tables.path.removesuffix(".txt").removesuffix(".parquet").removesuffix("/gemm_perf")


def origin_of(tables: list[Tables]) -> Origin:
    """Where samples of one kind come from: the first tables' origin, and which rows of others stand beside or in."""
    first = tables[0].origin
    others = []
    for part in tables:
        name = name_of(part)
        if part.stands_for is not None:
            others.append(f"{part.stands_for}: {', '.join(part.only)} of {name}")
        elif part.interrupted:
            others.append(f"{', '.join(part.only)}: without rows that were interrupted")
        elif part.modules:
            others.append(f"{', '.join(part.only)} modules of {name} less their GEMMs")
        elif part.held_up_beside is not None:
            others.append(f"{name}: without rows that were slower than on {part.held_up_beside}")
        elif part.only or part.origin != first:
            rows = f"{', '.join(part.only)}: " if part.only else ""
            rows += f"{part.least_tokens:,} tokens or more in " if part.least_tokens > 1 else ""
            others.append(f"{rows}{name}" + ("" if part.origin == first else f" of {part.origin.source}"))
    source = "; ".join([first.source, *others])
    return Origin(source, first.licence, max(part.origin.date for part in tables))


def trimmed(samples: SampleTable) -> SampleTable:
    """The samples without shapes that hardly any service runs, so that profiles stay small.

    Of linear attention no more than 32,768 tokens in one launch, the largest chunk budgets.
    """
    columns = samples.columns
    if samples.kind == "moe":
        return samples.select((columns["tensor_parallel"] <= 8) & (columns["expert_parallel"] <= 64))
    if samples.kind == "gemm":
        return samples.select((columns["n"] >= 64) & (columns["k"] >= 64))
    if samples.kind == "context_attention":
        return samples.select(columns["batch"] <= 64)
    if samples.kind == "generation_attention":
        return samples.select(columns["batch"] <= 1024)
    if samples.kind == "linear_attention":
        return samples.select(columns["batch"] * columns["tokens"] <= 32768)
    return samples


def read(tables: Tables, system: str, root: Path) -> Iterable[SampleTable]:
    """The samples that a recipe takes of a source. Raises ``FileError`` where the source has none there."""
    if tables.origin == LLMSERVINGSIM:
        yield from llmservingsim.read_device(root, system)
        return
    path = root / system / tables.path
    files = [path] if path.is_file() else sorted(file for file in path.glob("*") if file.stem in TABLES)
    files = [file for file in files if (TABLES[file.stem][0] == LATENT_MODULE) == tables.modules]
    if not files:
        raise FileError(path, "holds no kernel table")
    for file in files:
        samples = _chosen(aiconfigurator.read_table(file, system), tables)
        if tables.held_up_beside is not None and samples.kind == "linear_attention":
            beside = root / tables.held_up_beside / file.relative_to(root / system)
            samples = _not_held_up(samples, aiconfigurator.read_table(beside, tables.held_up_beside))
        yield _not_interrupted(samples) if tables.interrupted else samples


def _chosen(samples: SampleTable, tables: Tables) -> SampleTable:
    if "dtype" not in samples.columns:
        return samples
    dtypes = samples.columns["dtype"]
    chosen = np.isin(dtypes, tables.only) if tables.only else ~np.isin(dtypes, tables.without)
    samples = samples.select(chosen & (samples.columns["tokens"] >= tables.least_tokens))
    if tables.stands_for is None:
        return samples
    return replace(samples, columns=samples.columns | {"dtype": np.full(len(samples), tables.stands_for)})


def _not_held_up(samples: SampleTable, beside: SampleTable) -> SampleTable:
    """The samples that took no longer than the fastest of their shape on a chip that is no faster, and a twentieth."""
    fastest: dict[tuple[Any, ...], float] = {}
    for shape, latency_s in zip(_shapes(beside), beside.latency_s.tolist(), strict=True):
        fastest[shape] = min(latency_s, fastest.get(shape, np.inf))
    most_s = [_LONGER * fastest.get(shape, np.inf) for shape in _shapes(samples)]
    return samples.select(samples.latency_s <= most_s)


def _not_interrupted(samples: SampleTable) -> SampleTable:
    """The GEMMs that took less than half as long again as the fastest of the same of more tokens."""
    columns = samples.columns
    order = np.lexsort((-columns["tokens"], columns["k"], columns["n"], columns["dtype"]))
    most_s = np.empty(len(samples))
    product, fastest_s = None, np.inf
    for index in order.tolist():
        of = tuple(columns[name][index] for name in ("dtype", "n", "k"))
        if of != product:
            product, fastest_s = of, np.inf
        most_s[index] = _INTERRUPTED * fastest_s
        fastest_s = min(fastest_s, samples.latency_s[index])
    return samples.select(samples.latency_s < most_s)


def _shapes(samples: SampleTable) -> list[tuple[Any, ...]]:
    return list(zip(*(samples.columns[name].tolist() for name in SHAPE_COLUMNS[samples.kind]), strict=True))


def main() -> None:
    """Make the profiles asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--wheels", type=Path, required=True)
    parser.add_argument("names", nargs="*", choices=[[], *(recipe.name for recipe in RECIPES)], default=[])
    asked = parser.parse_args()
    wheels = {
        WHEEL: "0.12.0/aiconfigurator_core",
        OLDER_WHEEL: "0.10.0/aiconfigurator",
        OLDEST_WHEEL: "0.8.0/aiconfigurator",
    }
    roots = {origin: asked.wheels / folder / "systems" / "data" for origin, folder in wheels.items()}
    roots |= {REPOSITORY: asked.data / "aiconfigurator", LLMSERVINGSIM: asked.data / "llmservingsim"}
    for recipe in RECIPES:
        if not asked.names or recipe.name in asked.names:
            make(recipe, roots)


if __name__ == "__main__":
    main()
