"""A served dashboard and a browser, for the tests that look at what is really drawn."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page

from tools.dashboard_browser import browser, chromium, served

WAIT_MS = 120_000


def is_error(message: ConsoleMessage) -> bool:
    """Whether a page complains. Streamlit looks for its server below each page's path first, which is no complaint."""
    return message.type == "error" and "/_stcore/" not in message.location["url"]


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where the dashboard is served."""
    with served() as found:
        yield found


@pytest.fixture(scope="session")
def opened_browser() -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip("no chromium on the path: make chromium")
    with browser() as found:
        yield found


@pytest.fixture
def visitor(opened_browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a page as a new visitor. In the end no page may have told an error in its console."""
    contexts, told = [], []

    def visit(url: str, **options: object) -> Page:
        context = opened_browser.new_context(viewport={"width": 1280, "height": 1000}, **options)
        contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("console", lambda message: told.append(message.text) if is_error(message) else None)
        page.goto(url)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert told == []
