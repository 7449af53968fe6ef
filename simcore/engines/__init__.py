"""Engine presets: a YAML file each, of settings that scenarios override and of facts of the engine's kernels.

Nothing else names an engine: adding one is adding a file.
"""

from simcore.engines.fusion import Fusion, Producer
from simcore.engines.preset import (
    ASSUMED_KERNELS,
    DEFAULT_ENGINE,
    FOLDER,
    EngineKernels,
    EnginePreset,
    LaunchCounts,
    Padding,
    default_limits,
    engine_names,
    limit_notices,
    load_engine,
    version_notices,
)

__all__ = [
    "ASSUMED_KERNELS",
    "DEFAULT_ENGINE",
    "FOLDER",
    "EngineKernels",
    "EnginePreset",
    "Fusion",
    "LaunchCounts",
    "Padding",
    "Producer",
    "default_limits",
    "engine_names",
    "limit_notices",
    "load_engine",
    "version_notices",
]
