"""What a visitor has between reruns: the two setups, which the address holds too, and tasks on their way."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import streamlit as st

from dashboard.what_if import address
from dashboard.what_if.background import Answers, Desk, Workers
from dashboard.what_if.estimates import Estimates, estimate
from dashboard.what_if.setups import Pair, default_pair
from dashboard.what_if.tasks import read
from dashboard.what_if.trust import trusted
from dashboard.what_if.uploads import known_traces
from experiments.comparison.fingerprint import Fingerprints
from simcore.build.simulation import Simulation
from simcore.core.errors import ServetwinError
from simcore.core.result import Result
from simcore.output.run_folder import read_run_folder

_PREPARED = 8


@dataclass(frozen=True, slots=True)
class Checked:
    """A setup that is right: ready to run, with its estimates and the fingerprint of its result."""

    simulation: Simulation
    estimates: Estimates
    fingerprint: str

    @property
    def document(self) -> dict[str, Any]:
        """The scenario in full, as processes are given it."""
        return self.simulation.scenario.document()


@st.cache_resource(show_spinner=False)
def workers() -> Workers:
    """The processes of the whole server, one of them made ready at once."""
    found = Workers()
    found.warm_up(read, default_pair().document("A"))
    return found


@st.cache_resource(show_spinner=False)
def answers() -> Answers:
    """The results that the whole server keeps."""
    return Answers()


@st.cache_resource(show_spinner=False)
def folder() -> Path:
    """Where traces that were handed in lie while the server runs."""
    return Path(mkdtemp(prefix="servetwin-dashboard-"))


def traces() -> Mapping[str, Path]:
    """The traces that scenarios may name."""
    return known_traces(folder())


def desk() -> Desk:
    """The visitor's tasks."""
    if "desk" not in st.session_state:
        st.session_state["desk"] = Desk(workers(), answers())
    found: Desk = st.session_state["desk"]
    return found


def pair() -> Pair:
    """The two setups: of the address at first, then as they were last changed."""
    if "pair" not in st.session_state:
        st.session_state["pair"] = _from_address()
    found: Pair = st.session_state["pair"]
    return found


def _from_address() -> Pair:
    text = st.query_params.get(address.KEY)
    if text is None:
        return default_pair()
    try:
        return address.decoded(text)
    except ServetwinError as error:
        st.session_state["address_error"] = str(error)
        return default_pair()


def address_error() -> str | None:
    """What was wrong with the address, told once."""
    found: str | None = st.session_state.pop("address_error", None)
    return found


def change(new: Pair) -> None:
    """Let other setups be the visitor's."""
    st.session_state["pair"] = new


def write_address() -> None:
    """Let the address hold the setups; one that is too long for a link is left out."""
    try:
        text = address.encoded(pair())
    except ServetwinError:
        st.query_params.pop(address.KEY, None)
        return
    if st.query_params.get(address.KEY) != text:
        st.query_params[address.KEY] = text


def checked(document: Mapping[str, Any]) -> Checked:
    """The setup, checked as any scenario is; raises ``ServetwinError`` for what is wrong with it."""
    return _checked(json.dumps(document, sort_keys=True), document)


@st.cache_resource(max_entries=_PREPARED, show_spinner=False)
def _checked(key: str, _document: Mapping[str, Any]) -> Checked:
    simulation = Simulation.prepare(trusted(_document, traces()), folder())
    return Checked(simulation, estimate(simulation), Fingerprints().of(simulation.scenario.document()))


def show_run_folders(names: Sequence[str]) -> None:
    """Let pages show the run folders that the server was started with."""
    st.session_state["run_folders"] = [name for name in names if Path(name).is_dir()]


def run_folders() -> list[str]:
    """The run folders that the server was started with."""
    found: list[str] = st.session_state.get("run_folders", [])
    return found


@st.cache_resource(max_entries=4, show_spinner=False)
def result_in(name: str, _reader: Callable[[Path], Result] = read_run_folder) -> Result:
    """The result in one of the run folders."""
    return _reader(Path(name))
