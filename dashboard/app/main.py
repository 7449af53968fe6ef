"""The dashboard: ``streamlit run dashboard/app/main.py``, which ``servetwin dashboard`` does."""

import sys
from pathlib import Path

import streamlit as st

from dashboard.app.page_names import PAGES
from dashboard.app.session import show_run_folders

st.set_page_config(page_title="servetwin", layout="wide", initial_sidebar_state="auto")
show_run_folders(sys.argv[1:])
folder = Path(__file__).parent / "pages"
st.navigation(
    [
        st.Page(folder / f"{name}.py", title=title, url_path=name, default=name == "what_if")
        for name, title in PAGES.items()
    ],
    position="top",
).run()
