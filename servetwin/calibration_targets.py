"""The models that a calibration measures for, by what a user names: presets, configurations and scenarios."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from live.engine.setup import LiveSettings, LiveSetup
from live.engine.weights_choice import RANDOM, choose_weights
from live.measuring.passes import with_layers
from servetwin.calibration import Target
from servetwin.live_device import Limits
from simcore.build.simulation import Simulation
from simcore.scenario import read_scenario

_BLOCK_SIZE = 16
_SCENARIOS = (".yaml", ".yml")
_MOST_TOKENS = 32_768
"""The most tokens of keys and values that a measurement may hold."""
_MOST_BYTES = {"cpu": 4e9, "cuda": 40e9}
"""The most bytes of weights; of larger models fewer layers are run."""


def targets_of(names: Sequence[str], settings: LiveSettings, most_context: int) -> list[Target]:
    """One for each name; a name that ends in .yaml is a scenario, whose scheduler and lengths bound the steps."""
    return [
        _scenario(Path(name), settings) if Path(name).suffix in _SCENARIOS else _model(name, settings, most_context)
        for name in names
    ]


def _model(name: str, settings: LiveSettings, most_context: int) -> Target:
    return _target(name, {"model": name}, Path(), settings, most_context)


def _scenario(path: Path, settings: LiveSettings) -> Target:
    document = dict(read_scenario(path))
    model = str(document["model"])
    if (path.parent / model).exists():
        document["model"] = str((path.parent / model).resolve())
    simulated = Simulation.prepare(document, path.parent).run()
    requests = simulated.requests
    longest = int((requests["prompt_tokens"] + requests["output_tokens"]).max())
    target = _target(Path(model).stem, document, path.parent, settings, longest + _BLOCK_SIZE)
    return replace(target, steps=simulated.steps)


def _target(name: str, document: dict[str, Any], base_dir: Path, settings: LiveSettings, most_context: int) -> Target:
    model = choose_weights(document["model"], RANDOM, settings)
    on = settings.device.partition(":")[0]
    number_bytes = 4 if settings.number_format == "fp32" else 2
    model = replace(model, config=with_layers(model.config, number_bytes, _MOST_BYTES[on]))
    scheduler = document.get("scheduler", {})
    context = min(most_context, model.config.spec.max_context_tokens)
    described = {
        "model": document["model"],
        "engine": "servetwin-live",
        "scheduler": {"batching": scheduler["batching"]} if "batching" in scheduler else {},
        "memory": {"num_gpu_blocks": _MOST_TOKENS // _BLOCK_SIZE, "block_size_tokens": _BLOCK_SIZE},
        "workload": {
            "requests": 1,
            "arrivals": {"name": "constant", "rate_per_s": 1.0},
            "prompt_tokens": {"name": "fixed", "tokens": 8},
            "output_tokens": {"name": "fixed", "tokens": 4},
        },
    }
    setup = LiveSetup.prepare(model, described, base_dir, settings)
    batching = setup.simulation.scenario.scheduler.batching
    limits = Limits(
        int(batching.get("max_running_requests", 64)),
        min(int(batching.get("max_batched_tokens", 512)), context),
        context,
    )
    return Target(name, setup, limits)
