"""A dashboard that is served for a while, and a browser that opens it: for pictures and tests."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import which

from playwright.sync_api import Browser, Page, sync_playwright

from servetwin.dashboard_command import streamlit_arguments

_STARTING_S, _SETTLED_MS, _PAUSE_MS = 60, 240_000, 800
_SETTLED = """() => document.querySelector('[data-test-script-state="notRunning"]')
    && !document.querySelector('[data-testid="stProgress"], [data-testid="stSkeleton"]')"""


def chromium() -> str | None:
    """The browser, None where there is none."""
    return which("chromium") or which("chromium-browser")


@contextmanager
def served(runs: tuple[str, ...] = ()) -> Iterator[str]:
    """The address of a dashboard that is served meanwhile."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = streamlit_arguments(list(runs), port, "localhost", browser=False)
    process = subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield f"http://localhost:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + _STARTING_S
    while time.monotonic() < until_s and process.poll() is None:
        try:
            socket.create_connection(("localhost", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("the dashboard did not start")


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser without a window; raises ``FileNotFoundError`` where there is none."""
    program = chromium()
    if program is None:
        raise FileNotFoundError("no chromium on the path; Debian's package is called chromium")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield opened
        finally:
            opened.close()


def settle(page: Page) -> None:
    """Wait until the page is drawn and no simulation is on its way."""
    page.wait_for_selector("h1", timeout=_SETTLED_MS)
    for _ in range(3):  # a page may start the next run once one is done
        page.wait_for_function(_SETTLED, timeout=_SETTLED_MS)
        page.wait_for_timeout(_PAUSE_MS)
