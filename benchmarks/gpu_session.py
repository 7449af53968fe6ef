"""Everything that is worth measuring when a GPU is at hand, in one go of at most eight minutes.

``python -m benchmarks.gpu_session --out DIR`` runs its stages in the order of their worth: kernel tests, ratios of the
kernels, a calibration, live runs of Llama-3.1-8B's shapes (random bf16 weights) held against simulation at its prices
under four loads, a second calibration and how far it is from the first, and the engine's own work. What a stage wrote
is there as soon as it ends, and ``session.json`` after each says how it ended; a stage that takes too long is cut off,
so that those after it have their time. ``--toy`` rehearses it without a GPU.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic

LIMIT_S = 480
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Stage:
    """A command with the most seconds that it may take, and what its environment has more than this one's."""

    name: str
    command: tuple[str, ...]
    limit_s: float
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Ended:
    """How a stage ended: its exit code, None if it was cut off or never began."""

    name: str
    code: int | None
    seconds: float
    said: str


def stages(out: Path, toy: bool) -> list[Stage]:
    """What is run, the most useful first."""
    python = sys.executable
    interpreter = (("TRITON_INTERPRET", "1"),) if toy else ()
    kernels = ("tests/kernels",) if not toy else ("tests/kernels/test_rms_norm.py",)
    ratios = ("--toy",) if toy else ()
    model = "smollm2-toy" if toy else "llama-3.1-8b"
    scenario = str(ROOT / "scenarios" / "live" / f"{model}.yaml")
    on = ("--device", "cpu", "--clock", "cpu", "--force") if toy else ("--device", "cuda:0")
    live = ("--device", "cpu", "--threads", "1", "--most-tokens", "64") if toy else ("--device", "cuda:0")
    work = ("--batches", "1", "2", "--steps", "4") if toy else ("--device", "cuda", "--steps", "100")
    servetwin = (python, "-m", "servetwin")
    calibrate = (*servetwin, "calibrate", *on, "--for", scenario, "--minutes", "0.25" if toy else "0.9")
    first, second = (str(out / name) for name in ("calibration", "calibration-again"))
    return [
        Stage("kernel tests", (python, "-m", "pytest", "-q", "-x", "-n", "0", *kernels), 80, interpreter),
        Stage(
            "kernel ratios",
            (python, "-m", "benchmarks.kernels", "--out", str(out / "kernels"), *ratios),
            90,
            interpreter,
        ),
        Stage("calibration", (*calibrate, "--out", first), 75),
        Stage(
            "live against simulated",
            (*servetwin, "validate", scenario, "--weights", "random", "--out", str(out / "live"), *live,
             "--profile", first),
            125,
        ),
        Stage("calibration again", (*calibrate, "--out", second), 75),
        Stage("agreement of both", (*servetwin, "hardware", "diff", first, second), 10),
        Stage("work of the host", (python, "-m", "benchmarks.live_host_work", *work), 25),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/gpu"))
    parser.add_argument("--toy", action="store_true", help="rehearse on a CPU, with small sizes")
    arguments = parser.parse_args()
    out: Path = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    began = monotonic()
    found: list[Ended] = []
    for stage in stages(out, arguments.toy):
        left_s = LIMIT_S - (monotonic() - began)
        found.append(run(stage, min(stage.limit_s, left_s), out))
        keep(found, out)
        print(f"{found[-1].name}: {'cut off' if found[-1].code is None else f'exit code {found[-1].code}'} "
              f"after {found[-1].seconds:.0f} s", flush=True)  # fmt: skip
    sys.exit(any(ended.code for ended in found))


def run(stage: Stage, limit_s: float, out: Path) -> Ended:
    """Run one stage; all that it says goes to a file of its name."""
    log = out / f"{stage.name.replace(' ', '-')}.txt"
    began = monotonic()
    code = None
    with log.open("w") as said:
        try:
            environment = {**os.environ, **dict(stage.environment), "PYTHONPATH": str(ROOT)}
            code = subprocess.run(
                stage.command, cwd=ROOT, env=environment, stdout=said, stderr=subprocess.STDOUT, timeout=max(limit_s, 1)
            ).returncode
        except subprocess.TimeoutExpired:
            said.write("\ncut off\n")
    return Ended(stage.name, code, monotonic() - began, log.name)


def keep(found: list[Ended], out: Path) -> None:
    """Write what is known so far."""
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or "CPU"
    about = {"device": device, "torch": torch.__version__, "python": platform.python_version()}
    (out / "session.json").write_text(json.dumps({"about": about, "stages": list(map(asdict, found))}, indent=2) + "\n")


if __name__ == "__main__":
    main()
