"""Makes the profiles that come with servetwin: ``python -m calibrate.ship --data DIR --wheel DIR [NAME]...``.

``--data`` holds the public profiles by project (aiconfigurator, llmservingsim), ``--wheel`` an unpacked
``aiconfigurator-core`` wheel. ``NAME`` is accelerator/engine-version; all are made without one.
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrate.fit.grids import split_by
from calibrate.fit.held_out import FITS, fit_and_check
from calibrate.importers import aiconfigurator, llmservingsim
from calibrate.profile_writer import Origin, write_profile
from calibrate.samples import SHAPE_COLUMNS, SampleTable, joined

PROFILES = Path(__file__).resolve().parent.parent / "hardware_profiles"
REPOSITORY = Origin(
    "github.com/ai-dynamo/aiconfigurator, commit 095f58a51c4ca8e61b66ec108d86f223f8d559ce", "Apache-2.0", "2026-11-29"
)
WHEEL = Origin("aiconfigurator-core 0.12.0 from PyPI", "Apache-2.0", "2026-11-29")
LLMSERVINGSIM = Origin(
    "github.com/casys-kaist/LLMServingSim, commit 5daddb21a545658d5150b535712d0494584b5278", "MIT", "2026-11-29"
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A profile: the folders (system, family, engine, version) of aiconfigurator it is made of, or a device of
    LLMServingSim. ``blocks_from`` is a folder whose table stands for the engine's own kernels of block-scaled fp8,
    ``marlin_from`` one whose int4 experts stand for Marlin's on mxfp4: one kernel, and nearly as many bytes.
    ``held_up_beside`` is a system of the same chip with less memory: launches of linear attention that took longer than
    there were held up."""

    accelerator: str
    engine: str
    version: str
    origin: Origin
    system: str
    folders: tuple[str, ...] = ()
    from_wheel: tuple[str, ...] = ()
    blocks_from: str | None = None
    marlin_from: str | None = None
    held_up_beside: str | None = None


_FAMILIES = ("attention", "gemm", "moe", "mla", "linear_attention", "comm")


def _vllm(version: str, all_reduce: str, nccl: str) -> tuple[str, ...]:
    families = ("attention", "gemm", "linear_attention", "moe")
    return (*(f"{name}/vllm/{version}" for name in families), f"comm/vllm/{all_reduce}", f"comm/nccl/{nccl}")


def _trtllm(nccl: str) -> tuple[str, ...]:
    version = "1.3.0rc20"
    return (*(f"{name}/trtllm/{version}" for name in _FAMILIES), f"comm/nccl/{nccl}")


def _sglang(nccl: str) -> tuple[str, ...]:
    version = "0.5.14"
    return (*(f"{name}/sglang/{version}" for name in _FAMILIES), f"comm/nccl/{nccl}")


_HOPPER = (("h100-sxm", "h100_sxm"), ("h200-sxm", "h200_sxm"))
_LARGE = (*_HOPPER, ("b200", "b200_sxm"))
RECIPES = (
    Recipe("a100-sxm-80gb", "vllm", "0.14.0", REPOSITORY, "a100_sxm", _vllm("0.14.0", "0.14.0", "2.27.3")),
    Recipe("h100-sxm", "vllm", "0.19.0", REPOSITORY, "h100_sxm", _vllm("0.19.0", "0.19.0", "2.27.3")),
    Recipe(
        "h200-sxm",
        "vllm",
        "0.19.0",
        REPOSITORY,
        "h200_sxm",
        _vllm("0.19.0", "0.19.0", "2.26.2")[:-1],
        ("comm/nccl/2.26.2",),
    ),
    Recipe("b200", "vllm", "0.24.0", WHEEL, "b200_sxm", _vllm("0.24.0", "0.24.0", "2.29.2")),
    Recipe("l40s", "vllm", "0.24.0", WHEEL, "l40s", _vllm("0.24.0", "0.22.0", "2.27.3")),
    Recipe(
        "rtx-pro-6000-blackwell",
        "vllm",
        "0.24.0",
        WHEEL,
        "rtx_pro_6000_server",
        _vllm("0.24.0", "0.24.0", "2.29.2"),
    ),
    Recipe("rtx-pro-6000-blackwell", "vllm", "0.19.0", LLMSERVINGSIM, "RTXPRO6000"),
    Recipe("rtx-4090", "vllm", "0.19.0", LLMSERVINGSIM, "RTX4090"),
    *(
        Recipe(
            name,
            "vllm",
            "0.24.0",
            WHEEL,
            system,
            _vllm("0.24.0", "0.24.0", "2.29.2"),
            blocks_from="gemm/vllm/0.19.0",
            marlin_from="moe/sglang/0.5.10",
        )
        for name, system in _HOPPER
    ),
    *(
        Recipe(
            name,
            "sglang",
            "0.5.14",
            WHEEL,
            system,
            _sglang("2.29.2"),
            held_up_beside="h100_sxm" if system == "h200_sxm" else None,
        )
        for name, system in _LARGE
    ),
    *(Recipe(name, "trtllm", "1.3.0rc20", WHEEL, system, _trtllm("2.29.2")) for name, system in _HOPPER),
    # Of experts in block-scaled fp8 on Blackwell the table of TensorRT-LLM holds DeepGEMM alone; TensorRT-LLM's own
    # kernels, which it is mostly run with, were measured as SGLang runs them.
    Recipe(
        "b200",
        "trtllm",
        "1.3.0rc20",
        WHEEL,
        "b200_sxm",
        _trtllm("2.29.2"),
        blocks_from="moe/sglang/0.5.14",
    ),
)


BLOCKS = "fp8-block"
MARLIN = "mxfp4-marlin"
_LONGER = 1.05
LAUNCH_BOUND = ("vllm", "0.24.0")
"""Whose products in block-scaled fp8 hold the time to launch them from Python, 58 to 240 us however small they are."""


def make(recipe: Recipe, data: Path, wheel: Path) -> None:
    """Import, fit, check and write one profile."""
    by_kind: dict[str, list[SampleTable]] = {}
    for samples in _samples(recipe, data, wheel):
        if samples.kind in FITS:
            by_kind.setdefault(samples.kind, []).append(samples)
    fits = {}
    for kind in FITS:
        if kind in by_kind:
            versions = sorted({f"{part.engine} {part.version}" for part in by_kind[kind]})
            origin = recipe.origin
            if recipe.blocks_from is not None and recipe.blocks_from.startswith(kind):
                both = f"{WHEEL.source}; {BLOCKS}: {recipe.blocks_from} of {_blocks_origin(recipe).source}"
                origin = Origin(both, WHEEL.licence, WHEEL.date)
            if recipe.marlin_from is not None and recipe.marlin_from.startswith(kind):
                origin = Origin(f"{WHEEL.source}; {MARLIN}: int4 of {recipe.marlin_from}", WHEEL.licence, WHEEL.date)
            if kind == "collective" and recipe.from_wheel:
                both = f"{REPOSITORY.source}; {', '.join(recipe.from_wheel)}: {WHEEL.source}"
                origin = Origin(both, REPOSITORY.licence, REPOSITORY.date)
            fits[kind] = (fit_and_check(joined([trimmed(part) for part in by_kind[kind]])), origin, versions)
            errors = fits[kind][0].errors["all"]
            print(f"{_name(recipe)} {kind}: median {errors.median:.1%}, P90 {errors.p90:.1%}", flush=True)
    folder = PROFILES / recipe.accelerator / f"{recipe.engine}-{recipe.version}"
    write_profile(folder, recipe.accelerator, recipe.engine, recipe.version, fits)


def trimmed(samples: SampleTable) -> SampleTable:
    """The samples without shapes that hardly any service runs, so that profiles stay small.

    Of linear attention no more than 32,768 tokens in one launch, the largest chunk budgets; and no repeat that took a
    twentieth longer than the fastest of its shape, which something else held up: rare but on one machine.
    """
    columns = samples.columns
    if samples.kind == "moe":
        return samples.select((columns["tensor_parallel"] <= 8) & (columns["expert_parallel"] <= 64))
    if samples.kind == "gemm":
        chosen = (columns["n"] >= 64) & (columns["k"] >= 64)
        if (samples.engine, samples.version) == LAUNCH_BOUND:
            chosen &= columns["dtype"] != BLOCKS
        return samples.select(chosen)
    if samples.kind == "context_attention":
        return samples.select(columns["batch"] <= 64)
    if samples.kind == "generation_attention":
        return samples.select(columns["batch"] <= 1024)
    if samples.kind == "linear_attention":
        own = samples.select(columns["batch"] * columns["tokens"] <= 32768)
        shapes = split_by(own, SHAPE_COLUMNS[own.kind])
        return joined(of_one.select(of_one.latency_s <= _LONGER * of_one.latency_s.min()) for _, of_one in shapes)
    return samples


def _samples(recipe: Recipe, data: Path, wheel: Path) -> Iterable[SampleTable]:
    if recipe.origin is LLMSERVINGSIM:
        yield from llmservingsim.read_device(data / "llmservingsim", recipe.system)
        return
    repository, unpacked = data / "aiconfigurator", aiconfigurator.find_root(wheel / "aiconfigurator_core")
    own = repository if recipe.origin is REPOSITORY else unpacked
    for root, folders in ((own, recipe.folders), (unpacked, recipe.from_wheel)):
        for file in aiconfigurator.table_files(root, recipe.system):
            if "/".join(file.parts[-4:-1]) in folders:
                table = aiconfigurator.read_table(file)
                if recipe.blocks_from is not None and recipe.blocks_from.startswith(table.kind):
                    table = table.select(table.columns["dtype"] != BLOCKS)
                if recipe.marlin_from is not None and recipe.marlin_from.startswith(table.kind):
                    table = table.select(table.columns["dtype"] != MARLIN)
                if recipe.held_up_beside is not None and table.kind == "linear_attention":
                    beside = file.parents[4] / recipe.held_up_beside / file.relative_to(file.parents[3])
                    table = _not_held_up(table, aiconfigurator.read_table(beside))
                yield table
    if recipe.marlin_from is not None:
        table = aiconfigurator.read_table(unpacked / recipe.system / recipe.marlin_from / "moe_perf.parquet")
        of_int4 = table.select(table.columns["dtype"] == "int4")
        columns = of_int4.columns | {"dtype": np.full(len(of_int4), MARLIN)}
        yield replace(of_int4, columns=columns)
    if recipe.blocks_from is not None:
        root = repository if _blocks_origin(recipe) is REPOSITORY else unpacked
        (file,) = (root / recipe.system / recipe.blocks_from).glob(f"{recipe.blocks_from.split('/')[0]}_perf.parquet")
        table = aiconfigurator.read_table(file)
        yield table.select(table.columns["dtype"] == BLOCKS)


def _not_held_up(samples: SampleTable, beside: SampleTable) -> SampleTable:
    """The samples that took no longer than the fastest of their shape on a chip that is no faster, and a twentieth."""
    fastest: dict[tuple[Any, ...], float] = {}
    for shape, latency_s in zip(_shapes(beside), beside.latency_s.tolist(), strict=True):
        fastest[shape] = min(latency_s, fastest.get(shape, np.inf))
    most_s = [_LONGER * fastest.get(shape, np.inf) for shape in _shapes(samples)]
    return samples.select(samples.latency_s <= most_s)


def _shapes(samples: SampleTable) -> list[tuple[Any, ...]]:
    return list(zip(*(samples.columns[name].tolist() for name in SHAPE_COLUMNS[samples.kind]), strict=True))


def _blocks_origin(recipe: Recipe) -> Origin:
    return REPOSITORY if recipe.blocks_from == "gemm/vllm/0.19.0" else WHEEL


def _name(recipe: Recipe) -> str:
    return f"{recipe.accelerator}/{recipe.engine}-{recipe.version}"


def main() -> None:
    """Make the profiles asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("names", nargs="*", choices=[[], *map(_name, RECIPES)], default=[])
    asked = parser.parse_args()
    for recipe in RECIPES:
        if not asked.names or _name(recipe) in asked.names:
            make(recipe, asked.data, asked.wheel)


if __name__ == "__main__":
    main()
