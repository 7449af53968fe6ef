"""Latent attention out of modules that were measured whole: what they take beside their GEMMs."""

from dataclasses import replace

import numpy as np

from calibrate.fit.fitted import Fitted
from calibrate.fit.held_out import FITS
from calibrate.samples import SampleTable
from simcore.cost.calibrated.profile import MLA_HEAD_DIM
from simcore.models import LatentAttention
from simcore.models.catalogue import load_preset_spec

MODEL = "deepseek-v3"
"""Whose modules were measured, with the heads of one rank."""


def attention_of(modules: SampleTable, gemms: Fitted) -> SampleTable:
    """Samples of ``mla_context``: each module less its four GEMMs, as fitted for the same engine.

    Norms, rotation and the copies that join and pad keys and values stay in it. A rotation is priced apart as well, and
    so is the quantisation of inputs, if the modules were in fp8: a twentieth of a module at most counts twice. Modules
    no longer than their GEMMs are left out.
    """
    spec = load_preset_spec(MODEL)
    attention = spec.layer_groups[0].attention
    assert isinstance(attention, LatentAttention)
    assert attention.q_lora_rank is not None
    heads, ones = modules.columns["heads"], np.ones(len(modules), dtype=np.int64)
    latent = attention.kv_lora_rank + attention.rope_head_dim
    shapes = (
        (ones * (attention.q_lora_rank + latent), ones * spec.hidden_size),
        (heads * (attention.nope_head_dim + attention.rope_head_dim), ones * attention.q_lora_rank),
        (heads * (attention.nope_head_dim + attention.value_head_dim), ones * attention.kv_lora_rank),
        (ones * spec.hidden_size, heads * attention.value_head_dim),
    )
    tokens = modules.columns["batch"] * modules.columns["tokens"]
    left_s = modules.latency_s.copy()
    for n, k in shapes:
        columns = {"dtype": modules.columns["dtype"], "tokens": tokens, "n": n, "k": k}
        left_s -= FITS["gemm"].predict(gemms, replace(modules, kind="gemm", columns=columns))
    columns = {
        "kv_dtype": modules.columns["kv_dtype"],
        "heads": heads,
        "kv_heads": ones,
        "head_dim": MLA_HEAD_DIM * ones,
        "window": 0 * ones,
        "batch": modules.columns["batch"],
        "tokens": modules.columns["tokens"],
        "prefix": 0 * ones,
    }
    found = replace(modules, kind="mla_context", columns=columns, latency_s=left_s)
    return found.select(left_s > 0)
