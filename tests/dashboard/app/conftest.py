"""A page as a visitor has it, without a browser."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import dashboard.app
from dashboard.what_if.setups import Pair, default_pair, with_value

TIMEOUT_S = 240


def small_pair() -> Pair:
    """The setups that the dashboard opens with, with fewer requests."""
    pair = default_pair()
    return Pair(with_value(pair.shared, "workload.requests", 120), pair.a, pair.b)


def open_page(name: str, pair: Pair | None = None, **state: object) -> AppTest:
    """A page at its first run."""
    path = Path(dashboard.app.__file__).parent / "pages" / f"{name}.py"
    page = AppTest.from_file(str(path), default_timeout=TIMEOUT_S)
    page.session_state["pair"] = pair or small_pair()
    for key, value in state.items():
        page.session_state[key] = value
    return page.run()


def settled(page: AppTest) -> AppTest:
    """The page once its simulations are done."""
    until_s = time.monotonic() + TIMEOUT_S
    while any(button.label == "Cancel" for button in page.button) and time.monotonic() < until_s:
        time.sleep(0.1)
        page.run()
    assert not page.exception, page.exception
    return page


@pytest.fixture
def visit() -> Callable[..., AppTest]:
    """``open_page`` and ``settled`` in one, as tests cannot import from here."""
    return lambda *asked, **state: settled(open_page(*asked, **state))


@pytest.fixture
def settle() -> Callable[[AppTest], AppTest]:
    return settled


@pytest.fixture
def pair() -> Pair:
    return small_pair()
