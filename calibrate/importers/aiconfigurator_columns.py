"""What the kernel tables of aiconfigurator mean: from the columns of each to those of a kernel kind."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrate.samples import LATENT_MODULE
from simcore.cost.calibrated.profile import MLA_HEAD_DIM

Columns = dict[str, NDArray[Any]]
WHOLE_COLUMNS = (
    *("m", "n", "k"),
    *("num_heads", "num_key_value_heads", "head_dim", "window_size", "batch_size", "isl", "step"),
    *("hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size", "num_tokens"),
    *("num_gpus", "message_size"),
    *("seq_len", "num_k_heads", "head_k_dim", "num_v_heads", "head_v_dim"),
)
TEXT_COLUMNS = (
    *("gemm_dtype", "attn_dtype", "kv_cache_dtype", "moe_dtype", "nccl_dtype", "allreduce_dtype"),
    *("gemm_type", "mla_dtype", "model"),
    *("kernel_source", "op_name", "distribution", "phase", "model_name"),
)
_DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "fp8_block": "fp8-block",
    "int4_wo": "int4",
    "sq": "int8",
    "w4a16_mxfp4": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4-mxfp8",
}
ELEMENT_BYTES = {"fp16": 2, "bf16": 2, "int8": 1, "fp8": 1, "fp32": 4}
_OPERATIONS = {"alltoall": "all_to_all"}
_TOLD_APART = {"marlin": "mxfp4", "deepgemm": "fp8-block"}
"""Kernels of experts that engines run on demand, and the dtype whose default ones they differ much from."""
_IMPLEMENTATIONS = {"NCCL": "nccl", "vLLM_custom_graph": "custom_graph"}


def names_of(values: NDArray[Any]) -> NDArray[np.str_]:
    """Data types by the names they have here, others as they are."""
    return np.array([_DTYPES.get(value, value) for value in values])


def _kernel_dtypes(values: NDArray[Any]) -> NDArray[np.str_]:
    """fp16 counts as bf16: the same kernels multiply both, at the same rate."""
    names = names_of(values)
    return np.where(names == "fp16", "bf16", names)


def _gemm(raw: Columns) -> Columns:
    return {"dtype": _kernel_dtypes(raw["gemm_dtype"]), "tokens": raw["m"], "n": raw["n"], "k": raw["k"]}


def _attention(raw: Columns) -> Columns:
    heads = raw["num_heads"]
    window = raw.get("window_size", np.zeros(len(heads), dtype=np.int64))
    return {
        "kv_dtype": _kernel_dtypes(raw["kv_cache_dtype"]),
        "heads": heads,
        "kv_heads": raw["num_key_value_heads"],
        "head_dim": raw["head_dim"],
        "window": window,
        "batch": raw["batch_size"],
    }


def _context(raw: Columns) -> Columns:
    return {**_attention(raw), "tokens": raw["isl"], "prefix": raw["step"] if "step" in raw else 0 * raw["isl"]}


def _generation(raw: Columns) -> Columns:
    # ``step`` tokens stand in the cache; the new one attends to itself too.
    return {**_attention(raw), "context": raw["step"] + 1}


def _latent(raw: Columns) -> Columns:
    ones = np.ones(len(raw["num_heads"]), dtype=np.int64)
    return {**raw, "num_key_value_heads": ones, "head_dim": MLA_HEAD_DIM * ones, "window_size": 0 * ones}


def _latent_module(raw: Columns) -> Columns:
    if "mla_dtype" not in raw:
        raise KeyError("mla_dtype")
    return {
        "dtype": _kernel_dtypes(raw["gemm_type"]),
        "kv_dtype": _kernel_dtypes(raw["kv_cache_dtype"]),
        "heads": raw["num_heads"],
        "batch": raw["batch_size"],
        "tokens": raw["isl"],
    }


def _moe(raw: Columns) -> Columns:
    dtypes = _kernel_dtypes(raw["moe_dtype"]).astype(object)
    for kernel, dtype in _TOLD_APART.items():
        of_kernel = np.array([kernel in str(name) for name in raw.get("kernel_source", np.full(len(dtypes), ""))])
        dtypes[of_kernel & (dtypes == dtype)] = f"{dtype}-{kernel}"
    return {
        "dtype": dtypes.astype(str),
        "distribution": raw["distribution"].astype(str),
        "hidden": raw["hidden_size"],
        "intermediate": raw["inter_size"],
        "experts_per_token": raw["topk"],
        "experts": raw["num_experts"],
        "tensor_parallel": raw["moe_tp_size"],
        "expert_parallel": raw["moe_ep_size"],
        "tokens": raw["num_tokens"],
    }


def element_bytes_of(raw: Columns) -> NDArray[np.int64]:
    """Bytes of an element of each message of a table of collectives."""
    dtypes = names_of(raw["nccl_dtype"] if "nccl_dtype" in raw else raw["allreduce_dtype"])
    return np.array([ELEMENT_BYTES[dtype] for dtype in dtypes], dtype=np.int64)


def _collective(raw: Columns) -> Columns:
    element_bytes = element_bytes_of(raw)
    count = len(element_bytes)
    sources = raw.get("kernel_source", np.full(count, "custom"))
    operations = raw.get("op_name", np.full(count, "all_reduce"))
    return {
        "operation": np.array([_OPERATIONS.get(name, name) for name in operations]),
        "implementation": np.array([_IMPLEMENTATIONS.get(name, name.lower()) for name in sources]),
        "nodes": np.ones(count, dtype=np.int64),
        "ranks_per_node": raw["num_gpus"],
        "bytes": raw["message_size"] * element_bytes,
    }


def _linear_attention(raw: Columns) -> Columns:
    return {
        "phase": raw["phase"].astype(str),
        "key_heads": raw["num_k_heads"],
        "value_heads": raw["num_v_heads"],
        "key_head_dim": raw["head_k_dim"],
        "value_head_dim": raw["head_v_dim"],
        "batch": raw["batch_size"],
        "tokens": raw["seq_len"],
    }


TABLES: dict[str, tuple[str, Callable[[Columns], Columns]]] = {
    "gemm_perf": ("gemm", _gemm),
    "context_attention_perf": ("context_attention", _context),
    "generation_attention_perf": ("generation_attention", _generation),
    "context_mla_perf": ("mla_context", lambda raw: _context(_latent(raw))),
    "generation_mla_perf": ("mla_generation", lambda raw: _generation(_latent(raw))),
    "mla_context_module_perf": (LATENT_MODULE, _latent_module),
    "moe_perf": ("moe", _moe),
    "gdn_perf": ("linear_attention", _linear_attention),
    "custom_allreduce_perf": ("collective", _collective),
    "nccl_perf": ("collective", _collective),
}
"""The kernel tables, each with the kind it holds and what reads its columns."""
