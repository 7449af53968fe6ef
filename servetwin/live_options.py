"""Options that the commands of the live engine share, and what they make of them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from simcore.core.errors import InputError, ServetwinError

Device = Annotated[str, typer.Option(metavar="DEVICE", help="Where the model runs: cpu or cuda.")]
Weights = Annotated[
    str | None,
    typer.Option(metavar="PATH", help="A checkpoint folder, a .gguf file, or 'random'; the model's own by default."),
]
Dtype = Annotated[str | None, typer.Option(metavar="FORMAT", help="fp32, fp16 or bf16; fp32 on a CPU, bf16 on a GPU.")]
Threads = Annotated[
    int | None, typer.Option(metavar="N", help="Threads of the model on a CPU; torch's own number by default.")
]


def settings_of(device: str, dtype: str | None, threads: int | None) -> Any:
    """The settings of a live engine; raises ``ServetwinError`` where there is no such device, or no torch."""
    try:
        import torch
    except ImportError:
        raise ServetwinError("The live engine needs torch: pip install 'servetwin[live]'.") from None
    from live.engine.setup import LiveSettings

    kind = device.partition(":")[0]
    if kind not in ("cpu", "cuda"):
        raise InputError("--device", device, "cpu or cuda")
    if kind == "cuda" and not torch.cuda.is_available():
        raise InputError("--device", device, "cpu, as no CUDA device is there")
    if threads is not None and threads < 1:
        raise InputError("--threads", threads, "a whole number of at least 1")
    return LiveSettings(device=device, dtype=dtype, threads=threads)


def setup_of(document: dict[str, Any], base_dir: Path, weights: str | None, settings: Any) -> Any:
    """A scenario ready to run live; its model is looked up from ``base_dir`` as simulations do."""
    from live.engine.setup import LiveSetup
    from live.engine.weights_choice import choose_weights

    model = document.get("model")
    if not isinstance(model, str):
        raise InputError("model", model, "the name or the path of a model")
    if (base_dir / model).exists():
        model = str(base_dir / model)
    return LiveSetup.prepare(choose_weights(model, weights, settings), document, base_dir, settings)


def machine_of(setup: Any) -> str:
    """What computes the steps, in words."""
    import torch

    if setup.device.type == "cuda":
        return torch.cuda.get_device_name(setup.device)
    return f"this CPU, {torch.get_num_threads()} of its threads"
