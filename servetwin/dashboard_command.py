"""``servetwin dashboard``: what-if pages in a browser, served to this machine alone."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from simcore.core.errors import FileError, InputError, ServetwinError

_PORTS = range(1024, 65536)


def dashboard(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN_FOLDER]...", help="Run folders to look at beside new runs.")
    ] = None,
    port: Annotated[int, typer.Option(metavar="N", help="Where to listen.")] = 8501,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "localhost",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
) -> None:
    """Open what-if pages in a browser.

    Whoever reaches the address can use this machine's time: other machines cannot unless --host lets them.
    """
    if port not in _PORTS:
        raise InputError("--port", port, f"a whole number from {_PORTS.start} to {_PORTS.stop - 1}")
    if find_spec("streamlit") is None:
        raise ServetwinError("The dashboard needs Streamlit: pip install 'servetwin[dashboard]'.")
    for folder in runs or ():
        if not (folder / "summary.json").is_file():
            raise FileError(folder, "holds no run, expected a folder that servetwin run wrote")
    arguments = streamlit_arguments([str(folder.absolute()) for folder in runs or ()], port, host, browser)
    sys.stdout.flush()
    os.execv(arguments[0], arguments)


def streamlit_arguments(runs: list[str], port: int, host: str, browser: bool) -> list[str]:
    """The command that takes this process's place; it tells nobody of its use, whatever the user's settings are."""
    import dashboard as package

    main = Path(package.__file__).parent / "app" / "main.py"
    options = {
        "server.port": port,
        "server.address": host,
        "server.headless": str(not browser).lower(),
        "browser.gatherUsageStats": "false",
    }
    if host != "localhost":
        options["browser.serverAddress"] = host
    settings = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-m", "streamlit", "run", str(main), *settings, "--", *runs]
