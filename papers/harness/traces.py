"""Where the public traces lie that papers measured on."""

import os
from pathlib import Path

from simcore.core.errors import FileError


def public_trace(name: str, place: str) -> Path:
    """A trace that ``servetwin trace fetch NAME`` has put in ``traces``, or the one at ``place`` in a folder of data.

    That folder is what the environment variable ``SERVETWIN_DATA`` names. Raises ``FileError`` if it is in neither.
    """
    fetched = Path("traces") / f"{name}{Path(place).suffix}"
    data = os.environ.get("SERVETWIN_DATA")
    for path in (fetched, *([] if data is None else [Path(data) / "traces" / place])):
        if path.is_file():
            return path
    raise FileError(fetched, f"is not there, expected the trace as 'servetwin trace fetch {name}' puts it")
