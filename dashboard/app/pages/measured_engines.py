"""Measured against simulated: the committed results, and run folders against each other."""

import streamlit as st

from dashboard.app.panels import head, table
from dashboard.app.results_panel import differences_table
from dashboard.app.session import result_in, run_folders
from dashboard.what_if.documents import RESULTS, tables_in
from simcore.core.errors import ServetwinError

head("Fidelity", "How far simulated figures are from measured ones, by source and by load.")
found = [each for each in tables_in(RESULTS / "fidelity.md") if each.rows]
if not found:
    st.info("The results are documents of the repository, and this is no checkout of it: see docs/results/fidelity.md.")
else:
    titles = list(dict.fromkeys(each.title for each in found))
    title = st.selectbox("Table", titles, key="fidelity_table")
    for each in found:
        if each.title == title:
            columns = each.by_column()
            table(columns, list(columns)[1:])
    st.caption("Errors are (simulated − measured) / measured; docs/results/fidelity.md says how runs were repeated.")
    pictures = sorted((RESULTS / "figures").glob("fidelity-*.svg"))
    for column, picture in zip(st.columns(2) * len(pictures), pictures, strict=False):
        with column.container(border=True):
            st.image(str(picture), caption=picture.stem.removeprefix("fidelity-").replace("_", ", ").replace("-", " "))

st.subheader("Two run folders")
folders = run_folders()
if len(folders) < 2:
    st.caption("Start servetwin dashboard with two run folders to hold one against the other.")
else:
    left, right = st.columns(2)
    first = left.selectbox("Baseline", folders, index=0)
    second = right.selectbox("Held against it", folders, index=1)
    try:
        differences_table(result_in(first), result_in(second))
    except ServetwinError as error:
        st.error(str(error))
