"""Parts that several pages have: figures, tables, a task on its way, a setup to choose."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from dashboard.app.session import Checked, checked, desk, pair, result_in, run_folders, write_address
from dashboard.what_if.background import Job
from dashboard.what_if.setups import SIDES
from dashboard.what_if.tasks import run
from simcore.core.errors import ServetwinError
from simcore.core.result import Result

_REFRESH_S = 0.5
_NARROW = """<style>
[data-testid="stMainBlockContainer"] { padding-top: 4.2rem; max-width: 1500px; margin: 0 auto; }
[data-testid="stMetricValue"] { font-size: 1.45rem; }
</style>"""


def head(title: str, words: str) -> None:
    """The title of a page and a sentence on what it is for; the address then holds the setups."""
    st.html(_NARROW)
    st.title(title)
    st.caption(words)
    write_address()


def draw(figure: go.Figure | None, key: str, caption: str = "", **options: Any) -> Any:
    """A figure in the colours of the reader's theme; where there is nothing to draw, it says so."""
    if figure is None:
        st.caption("– no data")
        return None
    figure.update_layout(font={"color": None}, hoverlabel={"bgcolor": None, "font": {"color": None}})
    config = {"displaylogo": False, "modeBarButtonsToRemove": ["lasso2d", "select2d"]}
    shown = st.plotly_chart(figure, key=key, config=config, **options)
    if caption:
        st.caption(caption)
    return shown


def choose_setup(key: str) -> tuple[str, Checked] | None:
    """Setup A or B, as on the first page; None, with the reason on the page, where it is wrong."""
    side = str(st.segmented_control("Setup", SIDES, default="A", key=key, required=True))
    try:
        found = checked(pair().document(side))
    except ServetwinError as error:
        st.error(str(error))
        return None
    cluster = found.simulation.scenario.cluster
    st.caption(
        f"{found.simulation.spec.name} on {cluster.replicas} × {cluster.tensor_parallel} {cluster.accelerator}, "
        f"{found.estimates.requests:,} requests. Change it on the page What if."
    )
    return side, found


def choose_result(key: str) -> tuple[str, Result] | None:
    """The result of setup A or B, run if it must be, or that in a run folder; None where there is none yet."""
    names = [*SIDES, *run_folders()]
    name = str(st.segmented_control("Run", names, default=(run_folders() or SIDES)[0], key=key, required=True))
    try:
        if name not in SIDES:
            return name, result_in(name)
        found = checked(pair().document(name))
    except ServetwinError as error:
        st.error(str(error))
        return None
    desk().ask(name, found.fingerprint, run, found.document)
    answer = task(name, found.fingerprint, found.estimates.requests, "requests have arrived")
    return None if answer is None else (name, answer)


def task(place: str, fingerprint: str, whole: int, words: str) -> Any:
    """The answer of a task; else, with None, how far it is and a button to cancel it, or what went wrong."""
    answer = desk().answer(place, fingerprint)
    if answer is not None:
        return answer
    job = desk().job(place, fingerprint)
    if job is None:
        return None
    if job.error is not None:
        st.error(job.error)
    elif job.cancelled:
        st.info("Cancelled.")
    elif job.ended:
        return desk().answer(place, fingerprint)
    else:
        _progress(place, job, whole, words)
    return None


@st.fragment(run_every=_REFRESH_S)
def _progress(place: str, job: Job, whole: int, words: str) -> None:
    if job.ended:
        st.rerun()
    done = int(job.progress or 0)
    text = f"{done:,} of {whole:,} {words}" if done else "Starting …"
    st.progress(min(done / max(whole, 1), 1.0), text=text)
    st.button("Cancel", key=f"cancel-{place}", on_click=job.cancel)


def table(columns: Mapping[str, Sequence[Any]], numbers: Sequence[str] = ()) -> None:
    """A table of texts, all of it in sight, with those columns to the right that hold numbers."""
    config = {name: st.column_config.TextColumn(alignment="right") for name in numbers}
    st.dataframe(columns, hide_index=True, column_config=config, height="content")


def downloads(files: Sequence[tuple[str, str, str | bytes | Callable[[], Any], str]], key: str) -> None:
    """A row of buttons: label, file name, content and its kind."""
    with st.container(horizontal=True):
        for label, name, content, mime in files:
            st.download_button(label, content, name, mime, key=f"{key}-{name}", on_click="ignore")
