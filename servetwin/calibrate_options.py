"""Options of ``servetwin calibrate``."""

from pathlib import Path
from typing import Annotated

import typer

Device = Annotated[str | None, typer.Option(metavar="DEVICE", help="cpu, cuda or cuda:N; a GPU where there is one.")]
For = Annotated[
    str | None,
    typer.Option(
        "--for", metavar="MODEL[,MODEL...]", help="Models, config.json files or scenarios whose shapes are measured."
    ),
]
Minutes = Annotated[float, typer.Option(metavar="MINUTES", help="How long it may take.", min=0.1, max=600)]
Kernels = Annotated[str, typer.Option(metavar="all|NAME[,NAME...]", help="The kernel kinds to measure.")]
Out = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where to; runs/calibration-DEVICE by default.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where a run that was interrupted ended.")]
Force = Annotated[bool, typer.Option("--force", help="Measure although the device is busy.")]
Target = Annotated[
    float, typer.Option(metavar="SHARE", help="The expected error of steps at which to stop.", min=0.001, max=1)
]
DtypeOption = Annotated[str | None, typer.Option("--dtype", metavar="FORMAT", help="fp32, fp16 or bf16.")]
