"""A calibrated profile: the kernels of one engine version on one accelerator, with where each table comes from."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np

from simcore.core.errors import FileError, UnknownNameError
from simcore.cost.calibrated.base import ELEMENT_BYTES, KV_BYTES, Rates
from simcore.cost.calibrated.collectives import COLLECTIVE_KEYS, CollectiveTable
from simcore.cost.calibrated.context import CONTEXT_KEYS, ContextPrice, ContextTable
from simcore.cost.calibrated.document import PROFILE_FILE, Repeat, read_document
from simcore.cost.calibrated.elementwise import ELEMENTWISE_KEYS, ElementwiseTable
from simcore.cost.calibrated.gemm import GEMM_KEYS, GemmPrice, GemmTable
from simcore.cost.calibrated.generation import GENERATION_KEYS, GenerationPrice, GenerationTable
from simcore.cost.calibrated.linear_attention import (
    LINEAR_ATTENTION_KEYS,
    LINEAR_ATTENTION_PHASES,
    LinearAttentionPrice,
    LinearAttentionTable,
)
from simcore.cost.calibrated.moe import MOE_KEYS, MoeTable
from simcore.cost.calibrated.price import CurvePrice
from simcore.cost.calibrated.table import KernelTable, parse_table

MLA_HEAD_DIM = 576
"""What latent attention attends with: the latent of 512 and the rotary part of 64 (DeepSeek-V2, arXiv:2405.04434)."""
KEYS = {
    "gemm": GEMM_KEYS,
    "context_attention": CONTEXT_KEYS,
    "generation_attention": GENERATION_KEYS,
    "mixed_generation": GENERATION_KEYS,
    "mla_context": CONTEXT_KEYS,
    "mla_generation": GENERATION_KEYS,
    "moe": MOE_KEYS,
    "collective": COLLECTIVE_KEYS,
    "elementwise": ELEMENTWISE_KEYS,
    "linear_attention": LINEAR_ATTENTION_KEYS,
}
"""The kernel kinds, each with the columns that tell the rows of its table apart."""


def _names(rates: Mapping[str, Rates]) -> dict[str, Collection[str]]:
    """What columns of a table may hold: dtypes that have rates and sizes."""
    return {
        "phase": LINEAR_ATTENTION_PHASES,
        "dtype": rates.keys() & ELEMENT_BYTES.keys(),
        "kv_dtype": rates.keys() & KV_BYTES.keys(),
    }


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the samples of a table come from; ``samples`` of them were used."""

    source: str
    licence: str
    date: str
    versions: tuple[str, ...]
    samples: int


class KernelProfile:
    """Prices of the kernels of one engine version on one accelerator; every method gives None where data lacks.

    Prices are made once per shape: keep them, they are what is fast. ``provenance`` and ``ranges`` are by kernel kind;
    ``ranges`` holds the least and the greatest of each measured dimension, ``errors`` the held-out errors by kind and
    dtype ("all" for a kind as a whole), ``noise`` the median and P90 of what measurements are off by themselves, and
    ``repeats`` the tables whose measurements of the same kernels were taken together. ``machine`` says what was
    measured on and ``host`` what the engine's host adds to a step, where the profile was made by calibration.
    """

    def __init__(self, folder: Traversable | Path) -> None:
        """Read a profile's folder. Raises ``FileError`` or ``InputError`` for a file that is missing or broken."""
        document = read_document(folder, KEYS)
        self.accelerator = document.accelerator
        self.engine = document.engine
        self.version = document.version
        self.machine, self.host = document.machine, document.host
        self.name = f"{document.accelerator}/{document.engine}-{document.version}"
        self.provenance = {
            kind: Provenance(table.source, table.licence, table.date, tuple(table.versions), table.samples)
            for kind, table in document.tables.items()
        }
        self.ranges = {
            kind: {name: (least, most) for name, (least, most) in table.ranges.items()}
            for kind, table in document.tables.items()
        }
        self.errors = {
            kind: {name: held_out.quantiles_of() for name, held_out in table.held_out.items()}
            for kind, table in document.tables.items()
        }
        self.noise = {
            kind: {name: (noise.median, noise.p90) for name, noise in table.noise.items()}
            for kind, table in document.tables.items()
        }
        self.repeats: dict[str, list[Repeat]] = {kind: table.repeats for kind, table in document.tables.items()}
        rates = {
            kind: {dtype: Rates(**rate.model_dump()) for dtype, rate in table.rates.items()}
            for kind, table in document.tables.items()
        }
        parsed = {kind: parse_table(folder / f"{kind}.csv", KEYS[kind], _names(rates[kind])) for kind in rates}
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                self._build(parsed, rates, {kind: table.launched_apart for kind, table in document.tables.items()})
        except ArithmeticError as error:
            problem = f"its rates and tables do not go together ({error})"
            raise FileError(str(folder / PROFILE_FILE), problem) from error

    def _build(
        self, parsed: dict[str, KernelTable], rates: dict[str, dict[str, Rates]], apart: Mapping[str, bool]
    ) -> None:
        errors = self.errors
        self.gemms = GemmTable(parsed["gemm"], rates["gemm"], errors["gemm"]) if "gemm" in parsed else None
        self.experts = MoeTable(parsed["moe"], rates["moe"], errors["moe"]) if "moe" in parsed else None
        self.collectives = (
            CollectiveTable(parsed["collective"], errors["collective"]["all"]) if "collective" in parsed else None
        )
        self.elementwise = (
            ElementwiseTable(parsed["elementwise"], errors["elementwise"]) if "elementwise" in parsed else None
        )
        kind = "linear_attention"
        self._linear_attention = LinearAttentionTable(parsed[kind], errors[kind]["all"]) if kind in parsed else None
        self._context = {
            kind: ContextTable(parsed[kind], rates[kind], errors[kind]["all"], apart[kind])
            for kind in ("context_attention", "mla_context")
            if kind in parsed
        }
        self._generation = {
            kind: GenerationTable(parsed[kind], rates[kind], errors[kind]["all"])
            for kind in ("generation_attention", "mixed_generation", "mla_generation")
            if kind in parsed
        }

    def gemm(self, dtype: str, n: int, k: int) -> GemmPrice | None:
        """A (tokens, k) x (k, n) GEMM in "bf16", "fp8" (per tensor), "fp8-block" or "nvfp4"."""
        return None if self.gemms is None else self.gemms.price(dtype, n, k)

    @property
    def context_families(self) -> tuple[tuple[str, int, int], ...]:
        """The (KV dtype, head dimension, window) of which prompt chunks were measured; window 0 is full attention."""
        table = self._context.get("context_attention")
        return () if table is None else table.families

    def context_attention(
        self, kv_dtype: str, heads: int, kv_heads: int, head_dim: int, window: int = 0
    ) -> ContextPrice | None:
        """Attention of prompt chunks, heads counted on one rank."""
        table = self._context.get("context_attention")
        return None if table is None else table.price(kv_dtype, heads, kv_heads, head_dim, window)

    def generation_attention(
        self, kv_dtype: str, heads: int, kv_heads: int, head_dim: int, window: int = 0
    ) -> GenerationPrice | None:
        """Attention of decodes, heads counted on one rank."""
        table = self._generation.get("generation_attention")
        return None if table is None else table.price(kv_dtype, heads, kv_heads, head_dim, window)

    def mixed_generation(
        self, kv_dtype: str, heads: int, kv_heads: int, head_dim: int, window: int = 0
    ) -> GenerationPrice | None:
        """Attention of decodes launched beside a chunk, which kernels without packed heads serve far less well.

        The launch takes this, and the chunk's price less its floor. None where only decodes alone were measured.
        """
        table = self._generation.get("mixed_generation")
        return None if table is None else table.price(kv_dtype, heads, kv_heads, head_dim, window)

    def mla_context(self, kv_dtype: str, heads: int) -> ContextPrice | None:
        """Latent attention of prompt chunks, without its projections."""
        table = self._context.get("mla_context")
        return None if table is None else table.price(kv_dtype, heads, 1, MLA_HEAD_DIM)

    def mla_generation(self, kv_dtype: str, heads: int) -> GenerationPrice | None:
        """Latent attention of decodes on the latent itself (weights absorbed), without its projections."""
        table = self._generation.get("mla_generation")
        return None if table is None else table.price(kv_dtype, heads, 1, MLA_HEAD_DIM)

    def linear_attention(
        self, key_heads: int, value_heads: int, key_head_dim: int, value_head_dim: int
    ) -> LinearAttentionPrice | None:
        """A gated delta rule layer of one rank, without its projections: see ``LinearAttentionTable.price``."""
        if self._linear_attention is None:
            return None
        return self._linear_attention.price(key_heads, value_heads, key_head_dim, value_head_dim)

    def moe(
        self,
        dtype: str,
        hidden: int,
        intermediate: int,
        experts_per_token: int,
        experts: int,
        tensor_parallel: int = 1,
        expert_parallel: int = 1,
        distribution: str = "balanced",
    ) -> CurvePrice | None:
        """The experts of one rank over tokens: see ``MoeTable.price``."""
        if self.experts is None:
            return None
        return self.experts.price(
            dtype, hidden, intermediate, experts_per_token, experts, tensor_parallel, expert_parallel, distribution
        )

    @property
    def expert_dtypes(self) -> tuple[str, ...]:
        """The dtypes that experts were measured in; a suffix names kernels that are not the engine's default."""
        return () if self.experts is None else tuple(dict.fromkeys(dtype for dtype, _ in self.experts.measured))

    def collective(self, operation: str, implementation: str, ranks: int, nodes: int = 1) -> CurvePrice | None:
        """A collective over bytes: see ``CollectiveTable.price``."""
        return None if self.collectives is None else self.collectives.price(operation, implementation, ranks, nodes)

    def collectives_of(self, operation: str, ranks: int) -> tuple[CurvePrice, ...]:
        """An operation within a node by each implementation that was measured, but for those launched one by one."""
        if self.collectives is None:
            return ()
        names = [
            name
            for found, name, nodes in self.collectives.implementations
            if found == operation and nodes == 1 and not name.endswith("eager")
        ]
        prices = [self.collectives.price(operation, name, ranks) for name in names]
        return tuple(price for price in prices if price is not None)


def available_profiles(accelerator: str, kinds: Iterable[str] = ()) -> tuple[str, ...]:
    """The profiles that come with servetwin for an accelerator, each "engine-version", or none.

    Only those with tables of all ``kinds``, which is told without reading them.
    """
    files = (PROFILE_FILE, *(f"{kind}.csv" for kind in kinds))
    folder = resources.files("hardware_profiles") / accelerator
    if not folder.is_dir():
        return ()
    return tuple(sorted(entry.name for entry in folder.iterdir() if all((entry / file).is_file() for file in files)))


def load_profile(accelerator: str, name_or_path: str) -> KernelProfile:
    """A profile of ``available_profiles``, or the one in a folder of one's own (anything with a slash is a path).

    Raises ``UnknownNameError`` for a name that is not there, ``FileError`` and ``InputError`` for a broken profile.
    """
    if len(Path(name_or_path).parts) > 1:
        return KernelProfile(Path(name_or_path))
    known = available_profiles(accelerator)
    if name_or_path not in known:
        raise UnknownNameError("profile", name_or_path, known)
    return KernelProfile(resources.files("hardware_profiles") / accelerator / name_or_path)
