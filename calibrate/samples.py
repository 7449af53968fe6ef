"""Measurements in one form, whoever made them: columns of shape parameters, a latency, and where each row stood."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simcore.core.errors import FileError
from simcore.cost.calibrated.elementwise import ELEMENTWISE_KEYS
from simcore.cost.calibrated.linear_attention import LINEAR_ATTENTION_KEYS
from simcore.cost.calibrated.moe import MOE_KEYS

LATENT_MODULE = "mla_context_module"
"""Whole modules of latent attention: the norms, projections and attention of one layer's prompts."""
ATTENTION = ("kv_dtype", "heads", "kv_heads", "head_dim", "window")
SHAPE_COLUMNS: dict[str, tuple[str, ...]] = {
    "gemm": ("dtype", "tokens", "n", "k"),
    "context_attention": (*ATTENTION, "batch", "tokens", "prefix"),
    "generation_attention": (*ATTENTION, "batch", "context"),
    "mixed_attention": (*ATTENTION, "tokens", "prefix", "batch", "context"),
    "mixed_generation": (*ATTENTION, "batch", "context"),
    "mla_context": (*ATTENTION, "batch", "tokens", "prefix"),
    "mla_generation": (*ATTENTION, "batch", "context"),
    LATENT_MODULE: ("dtype", "kv_dtype", "heads", "batch", "tokens"),
    "moe": (*MOE_KEYS, "tokens"),
    "active_experts": ("dtype", "hidden", "intermediate", "tokens", "experts_per_token", "active_experts"),
    "collective": ("operation", "implementation", "nodes", "ranks_per_node", "bytes"),
    "elementwise": (*ELEMENTWISE_KEYS, "tokens"),
    "linear_attention": (*LINEAR_ATTENTION_KEYS, "tokens"),
    "layer": ("name", "model", "tensor_parallel", "tokens"),
    "prompt_pass": ("model", "tensor_parallel", "batch", "prompt_tokens"),
    "token_pass": ("model", "tensor_parallel", "batch", "prompt_tokens", "output_tokens"),
}
"""The kernel kinds, each with its shape parameters. docs/guides/calibrate.md says what they mean."""
TEXT_COLUMNS = frozenset(
    ("dtype", "kv_dtype", "distribution", "operation", "implementation", "operator", "phase", "name", "model")
)
_MAY_BE_ZERO = frozenset(("window", "prefix", "bytes", "context"))
_ABSENT_IN_A_MIX = frozenset(("tokens", "batch"))


@dataclass(frozen=True, slots=True)
class SampleTable:
    """Measurements of one kernel kind by one engine version on one accelerator, from one file.

    ``columns`` holds the ``SHAPE_COLUMNS`` of the kind; ``lines`` the line (of text) or row (of a table, the first
    being 1) that each came from.
    """

    kind: str
    accelerator: str
    engine: str
    version: str
    columns: dict[str, NDArray[Any]]
    latency_s: NDArray[np.float64]
    file: str
    lines: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.latency_s)

    def select(self, chosen: NDArray[np.bool_]) -> "SampleTable":
        """The rows for which ``chosen`` is true."""
        columns = {name: values[chosen] for name, values in self.columns.items()}
        return SampleTable(
            self.kind,
            self.accelerator,
            self.engine,
            self.version,
            columns,
            self.latency_s[chosen],
            self.file,
            self.lines[chosen],
        )

    def checked(self) -> "SampleTable":
        """This table. Raises ``FileError``, naming file and line, for a value that no measurement can have."""
        missing = [name for name in SHAPE_COLUMNS[self.kind] if name not in self.columns]
        if missing:
            raise FileError(self.file, f"no column {missing[0]} for {self.kind}")
        self._refuse(~np.isfinite(self.latency_s) | (self.latency_s <= 0), "latency", self.latency_s, "above zero")
        may_be_zero = _MAY_BE_ZERO | _ABSENT_IN_A_MIX if self.kind == "mixed_attention" else _MAY_BE_ZERO - {"context"}
        for name, values in self.columns.items():
            if name in TEXT_COLUMNS:
                self._refuse(values == "", name, values, "some text")
            else:
                least = 0 if name in may_be_zero else 1
                bad = ~np.isfinite(values.astype(np.float64)) | (values < least)
                self._refuse(bad, name, values, f"a whole number of at least {least}")
        if "kv_heads" in self.columns:
            kv_heads = self.columns["kv_heads"]
            self._refuse(kv_heads > self.columns["heads"], "kv_heads", kv_heads, "no more than there are heads")
        if self.kind == "moe":
            chosen = self.columns["experts_per_token"]
            self._refuse(
                chosen > self.columns["experts"], "experts_per_token", chosen, "no more than there are experts"
            )
            ranks = self.columns["expert_parallel"]
            self._refuse(ranks > self.columns["experts"], "expert_parallel", ranks, "no more than there are experts")
        if self.kind == "linear_attention":
            value_heads, tokens = self.columns["value_heads"], self.columns["tokens"]
            uneven = value_heads % self.columns["key_heads"] != 0
            self._refuse(uneven, "value_heads", value_heads, "a multiple of the key heads")
            several = (self.columns["phase"] == "generation") & (tokens != 1)
            self._refuse(several, "tokens", tokens, "1 in generation")
        return self

    def _refuse(self, bad: NDArray[np.bool_], name: str, values: NDArray[Any], expected: str) -> None:
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            value = str(values[first]) or "empty"
            raise FileError(self.file, f"{name} is {value}, expected {expected}", int(self.lines[first]))


def joined(tables: Iterable[SampleTable]) -> SampleTable:
    """Tables of one kind, engine and accelerator as one; the first file's name stands for all."""
    parts = list(tables)
    first = parts[0]
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in first.columns}
    return SampleTable(
        first.kind,
        first.accelerator,
        first.engine,
        first.version,
        columns,
        np.concatenate([part.latency_s for part in parts]),
        first.file,
        np.concatenate([part.lines for part in parts]),
    )


def require_folder(folder: Path, holds: str) -> Path:
    """The folder. Raises ``FileError`` where there is none."""
    if not folder.is_dir():
        raise FileError(folder, f"no such folder; expected one that holds {holds}")
    return folder
