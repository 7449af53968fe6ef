"""Setup A beside setup B: estimates at once, then both simulated on the same requests."""

import streamlit as st

from dashboard.app.estimate_panel import estimates_panel
from dashboard.app.panels import head, task
from dashboard.app.results_panel import results_panel, setup_downloads
from dashboard.app.session import Checked, address_error, desk
from dashboard.app.setup_form import setup_form, shared_form
from dashboard.what_if.setups import SIDES
from dashboard.what_if.tasks import run

MOST_AT_ONCE = 5_000
"""Requests of setups that are simulated without being asked for."""

head("What if", "Two setups serve the same requests. Change anything; the address of the page then holds both.")
if problem := address_error():
    st.error(problem)

st.subheader("Requests and limits, the same for both")
shared_slots = shared_form()

found: dict[str, Checked] = {}
for column, side in zip(st.columns(2, gap="large"), SIDES, strict=True):
    with column:
        st.subheader(f"Setup {side}")
        checked = setup_form(side, shared_slots)
        if checked is not None:
            found[side] = checked
            setup_downloads(side, checked)

st.subheader("At once: what needs no simulation")
if found:
    estimates_panel(found)

st.subheader("Simulated")
many = max((checked.estimates.requests for checked in found.values()), default=0) > MOST_AT_ONCE
asked = st.button("Simulate", type="primary", disabled=not found, help="Runs of many requests wait for this button.")
results = {}
for column, (side, checked) in zip(st.columns(2, gap="large"), found.items(), strict=False):
    job = desk().job(side, checked.fingerprint)
    if asked or (not many and job is None):
        desk().ask(side, checked.fingerprint, run, checked.document)
    with column:
        answer = task(side, checked.fingerprint, checked.estimates.requests, f"requests have arrived at setup {side}")
    if answer is not None:
        results[side] = answer
if results:
    results_panel(results, found)
elif found and many:
    st.caption(f"More than {MOST_AT_ONCE:,} requests: press Simulate.")
