"""Layers profiled by LLMServingSim (github.com/casys-kaist/LLMServingSim, MIT): one folder per model, dtype and TP.

``dense.csv`` and ``per_sequence.csv`` hold layers over tokens, ``attention.csv`` a chunk over a prefix beside decodes,
``moe.csv`` experts by how many of them are active. Times are in microseconds.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrate.importers.columns import CsvColumns
from calibrate.samples import SampleTable, require_folder
from simcore.core.errors import FileError, UnknownNameError
from simcore.core.yaml_text import read_yaml
from simcore.cost.model_operators import head_operators, layer_operators
from simcore.cost.operators import MEASURED_AS
from simcore.models import Attention, DenseFeedForward, LayerGroup, MixtureOfExperts, ModelSpec, load_model

ACCELERATORS = {"RTX4090": "rtx-4090", "RTXPRO6000": "rtx-pro-6000-blackwell"}
MODELS = {
    "meta-llama/Llama-3.1-8B": "llama-3.1-8b",
    "Qwen/Qwen3-32B": "qwen3-32b",
    "Qwen/Qwen3-30B-A3B-Instruct-2507": "qwen3-30b-a3b",
}

ELEMENTWISE = {
    "final_layernorm": "norm",
    "qk_norm": "query_key_norm",
    "act_fn": "mlp_activation",
    "sampler": "sampling",
}
"""The operator whose launches a layer measures. The last norm stands for those of layers, which all add a residual:
what is called ``layernorm`` is the mean of the two of the only layer that was run, whose first has none to add."""
_UNDIVIDED = frozenset({"norm", "query_key_norm", "sampling"})
"""Measured by one rank alone, which the folders of more ranks repeat."""


def read_device(root: Path, device: str) -> Iterator[SampleTable]:
    """All samples of one device, such as "RTX4090"."""
    if device not in ACCELERATORS:
        raise UnknownNameError("--system", device, ACCELERATORS)
    for meta in sorted(require_folder(root / device, "LLMServingSim profiles").glob("*/*/*/meta.yaml")):
        model = "/".join(meta.parts[-4:-2])
        if model not in MODELS:
            raise UnknownNameError(f"{meta}: model", model, MODELS)
        version = _vllm_version(meta)
        for folder in sorted(meta.parent.glob("tp*")):
            yield from _Folder(folder, device, version, load_model(MODELS[model])).tables()


def _vllm_version(meta: Path) -> str:
    document = read_yaml(meta)
    version = document.get("vllm_version") if isinstance(document, dict) else None
    if not isinstance(version, str):
        raise FileError(meta, "has no vllm_version, expected the version that was profiled")
    return version


class _Folder:
    """One model on one device with one degree of tensor parallelism."""

    def __init__(self, folder: Path, device: str, version: str, spec: ModelSpec) -> None:
        self.folder = folder
        self.device = device
        self.version = version
        self.spec = spec
        ranks = folder.name.removeprefix("tp")
        if not ranks.isdecimal() or int(ranks) < 1:
            raise FileError(folder, "expected a folder named tp and a number of ranks, such as tp2")
        self.ranks = int(ranks)
        self.group: LayerGroup = spec.layer_groups[0]

    def tables(self) -> Iterator[SampleTable]:
        yield from self._layers("dense.csv", "tokens")
        yield from self._layers("per_sequence.csv", "sequences")
        yield from self._attention()
        if (self.folder / "moe.csv").is_file():
            yield self._experts()

    def _table(self, kind: str, file: CsvColumns, chosen: NDArray[np.bool_], columns: dict[str, Any]) -> SampleTable:
        count = int(chosen.sum())
        full = {
            name: value[chosen] if isinstance(value, np.ndarray) else np.full(count, value)
            for name, value in columns.items()
        }
        latency_s = file.numbers("time_us")[chosen] * 1e-6
        accelerator = ACCELERATORS[self.device]
        path, lines = str(file.path), file.lines[chosen]
        return SampleTable(kind, accelerator, "vllm", self.version, full, latency_s, path, lines).checked()

    def _layers(self, name: str, axis: str) -> Iterator[SampleTable]:
        file = CsvColumns(self.folder / name)
        layers, tokens = file.text("layer"), file.whole(axis)
        shapes = self._matmuls()
        elementwise = self._elementwise()
        for layer in sorted(set(layers)):
            chosen = layers == layer
            if layer in shapes:
                n, k = shapes[layer]
                yield self._table("gemm", file, chosen, {"dtype": "bf16", "tokens": tokens, "n": n, "k": k})
            elif layer in elementwise:
                operator, width = elementwise[layer]
                columns = {"operator": operator, "bytes_per_token": width, "tokens": tokens}
                yield self._table("elementwise", file, chosen, columns)
            elif layer != "layer":  # a header repeated in the middle of a file
                model = self.spec.name
                parallel = {"name": layer, "model": model, "tensor_parallel": self.ranks, "tokens": tokens}
                yield self._table("layer", file, chosen, parallel)

    def _matmuls(self) -> dict[str, tuple[int, int]]:
        """(n, k) of the layers that are GEMMs, on one rank."""
        hidden, ranks = self.spec.hidden_size, self.ranks
        attention, block = self.group.attention, self.group.feed_forward
        assert isinstance(attention, Attention)
        queries = attention.query_heads * attention.head_dim // ranks
        key_values = 2 * attention.kv_heads * attention.head_dim // ranks
        shapes = {
            "qkv_proj": (queries + key_values, hidden),
            "o_proj": (hidden, queries),
            "lm_head": (self.spec.vocabulary_size // ranks, hidden),
        }
        if isinstance(block, DenseFeedForward):
            width = block.intermediate_size // ranks
            shapes |= {"gate_up_proj": (2 * width, hidden), "down_proj": (hidden, width)}
        return shapes

    def _elementwise(self) -> dict[str, tuple[str, int]]:
        """What the layers of ``ELEMENTWISE`` measure and the bytes that a launch moves for a token, as prices count."""
        found = (*layer_operators(self.spec, "bf16", self.ranks), *head_operators(self.spec, self.ranks))
        operators = {operator.name: operator for operator in found}
        return {
            layer: (MEASURED_AS[name], round(operators[name].activation_bytes_per_token / operators[name].launches))
            for layer, name in ELEMENTWISE.items()
            if name in operators and not (name in _UNDIVIDED and self.ranks > 1)
        }

    def _attention(self) -> Iterator[SampleTable]:
        file = CsvColumns(self.folder / "attention.csv")
        attention = self.group.attention
        assert isinstance(attention, Attention)
        columns = {
            "kv_dtype": "bf16",
            "heads": attention.query_heads // self.ranks,
            "kv_heads": attention.kv_heads // self.ranks,
            "head_dim": attention.head_dim,
            "window": 0,
        }
        tokens, prefix = file.whole("prefill_chunk", least=0), file.whole("kv_prefill", least=0)
        batch, context = file.whole("n_decode", least=0), file.whole("kv_decode", least=0)
        chunk, decodes = tokens > 0, batch > 0
        ones = np.ones_like(tokens)
        yield self._table(
            "context_attention", file, chunk & ~decodes, {**columns, "batch": ones, "tokens": tokens, "prefix": prefix}
        )
        yield self._table(
            "generation_attention", file, decodes & ~chunk, {**columns, "batch": batch, "context": context}
        )
        # The least chunk all but leaves the decodes alone, in the kernel that serves chunks.
        least = tokens[chunk].min() if chunk.any() else 0
        beside = chunk & decodes & (tokens == least) & (prefix == 0)
        yield self._table("mixed_generation", file, beside, {**columns, "batch": batch, "context": context})
        mixed = {**columns, "tokens": tokens, "prefix": prefix, "batch": batch, "context": context}
        yield self._table("mixed_attention", file, chunk & decodes, mixed)

    def _experts(self) -> SampleTable:
        file = CsvColumns(self.folder / "moe.csv")
        block = self.group.feed_forward
        assert isinstance(block, MixtureOfExperts)
        columns = {
            "dtype": "bf16",
            "hidden": self.spec.hidden_size,
            "intermediate": block.expert_intermediate_size // self.ranks,
            "tokens": file.whole("tokens"),
            "experts_per_token": block.experts_per_token,
            "active_experts": file.whole("activated_experts"),
        }
        return self._table("active_experts", file, np.ones(len(file.lines), dtype=bool), columns)
