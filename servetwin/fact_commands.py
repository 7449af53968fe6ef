"""``servetwin models`` and ``servetwin hardware``: what is known by name."""

import json
from typing import Any

import typer

from servetwin.console import console, plain_table, print_table
from servetwin.options import AsJson
from simcore.hardware import accelerator_names, load_accelerator
from simcore.memory.kv_bytes import kv_bytes_per_token
from simcore.models import count_parameters, load_model, preset_names, weight_bytes


def models(as_json: AsJson = False) -> None:
    """List the models known by name.

    Active parameters are those at work for one token, the whole input embedding among them: some publishers, such as
    OpenAI of gpt-oss and DeepSeek, leave that out.
    """
    rows = [_model_row(name) for name in preset_names()]
    titles = {
        "name": "model",
        "parameters": "parameters (billion)",
        "active_parameters": "active (billion)",
        "layers": "layers",
        "max_context_tokens": "context (tokens)",
        "dtype": "dtype",
        "weight_bytes": "weights (GB)",
        "kv_bytes_per_token": "KV (bytes/token)",
    }
    shown = {"parameters": _billions, "active_parameters": _billions, "weight_bytes": _gigabytes}
    _print(rows, titles, shown, as_json)


def hardware(as_json: AsJson = False) -> None:
    """List the accelerators known by name."""
    rows = [_accelerator_row(name) for name in accelerator_names()]
    titles = {
        "name": "accelerator",
        "memory_bytes": "memory (GB)",
        "memory_bandwidth_bytes_per_s": "bandwidth (GB/s)",
        "bf16_flops_per_s": "bf16 (TFLOP/s)",
        "fp8_flops_per_s": "fp8 (TFLOP/s)",
        "interconnect_bytes_per_s": "links (GB/s)",
        "interconnect_domain": "linked",
        "tdp_w": "TDP (W)",
        "price_usd_per_h": "price (USD/h)",
        "price_date": "as of",
    }
    shown = {
        "memory_bytes": _gigabytes,
        "memory_bandwidth_bytes_per_s": _gigabytes,
        "interconnect_bytes_per_s": _gigabytes,
        "bf16_flops_per_s": _tera,
        "fp8_flops_per_s": _tera,
    }
    _print(rows, titles, shown, as_json)


def _model_row(name: str) -> dict[str, Any]:
    spec = load_model(name)
    parameters = count_parameters(spec)
    return {
        "name": name,
        "parameters": parameters.total,
        "active_parameters": parameters.active,
        "layers": spec.layers,
        "max_context_tokens": spec.max_context_tokens,
        "dtype": spec.dtype,
        "weight_bytes": weight_bytes(spec),
        "kv_bytes_per_token": kv_bytes_per_token(spec),
    }


def _accelerator_row(name: str) -> dict[str, Any]:
    accelerator = load_accelerator(name)
    return {
        "name": name,
        "title": accelerator.title,
        "memory_bytes": accelerator.memory_bytes,
        "memory_bandwidth_bytes_per_s": accelerator.memory_bandwidth_bytes_per_s,
        "bf16_flops_per_s": accelerator.peak_flops_per_s.get("bf16"),
        "fp8_flops_per_s": accelerator.peak_flops_per_s.get("fp8"),
        "interconnect_bytes_per_s": accelerator.interconnect_bytes_per_s,
        "interconnect_domain": accelerator.interconnect_domain,
        "tdp_w": accelerator.tdp_w,
        "price_usd_per_h": accelerator.price_usd_per_h,
        "price_date": accelerator.price_date,
        "sources": accelerator.sources,
    }


def _print(rows: list[dict[str, Any]], titles: dict[str, str], shown: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = plain_table(*titles.values())
    for row in rows:
        table.add_row(*(_cell(row[key], shown.get(key)) for key in titles))
    print_table(table, console())


def _cell(value: Any, show: Any) -> str:
    if value is None:
        return "-"
    if show is not None:
        return str(show(value))
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def _billions(count: float) -> str:
    return f"{count / 1e9:.3g}"


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:,.4g}"


def _tera(rate: float) -> str:
    return f"{rate / 1e12:,.4g}"
