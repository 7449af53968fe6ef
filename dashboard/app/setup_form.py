"""Fields for a setup. What is wrong with it stands beside the field that it is about."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard.app.session import Checked, change, checked, folder, pair, traces
from dashboard.what_if.fields import SETUP_FIELDS, SHARED_FIELDS, Field, field_of_error, shown_fields
from dashboard.what_if.setups import SIDES, default_pair, value_at, with_value
from dashboard.what_if.uploads import keep_trace, scenario_in
from simcore.core.errors import CapacityError, InputError, ServetwinError
from simcore.scenario import override, parse_scenario

_SYNTHETIC = "synthetic"
_ALWAYS = 6
"""Fields of a setup that are always in sight; the others are under a heading."""
_COLUMNS = 4
_FIRST_OF_CAPACITY = "cluster.accelerator"


class Slots:
    """Places under fields where an error is shown."""

    def __init__(self) -> None:
        self._places: dict[str, Any] = {}
        self._fields: list[Field] = []
        self._rest = st.empty()

    def add(self, field: Field) -> None:
        """Take the place under a field that was just drawn."""
        self._fields.append(field)
        self._places[field.path] = st.empty()

    def take(self, error: ServetwinError) -> bool:
        """Show an error under the field that it is about; False where none is."""
        name = error.field if isinstance(error, InputError) else ""
        if isinstance(error, CapacityError):
            name = _FIRST_OF_CAPACITY
        field = field_of_error(name, self._fields)
        if field is not None:
            self._places[field.path].error(str(error))
        return field is not None

    def show(self, error: ServetwinError) -> None:
        """Show an error above all fields."""
        self._rest.error(str(error))


def complete(document: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario with defaults filled in as far as it is right, to show what holds."""
    try:
        return parse_scenario(document).document()
    except ServetwinError:
        return dict(document)


def shared_form() -> Slots:
    """The fields that both setups share."""
    slots = Slots()
    full = complete(pair().document("A"))
    _workload_source(full)
    full = complete(pair().document("A"))
    shown = shown_fields(SHARED_FIELDS, full)
    for start in range(0, len(shown), _COLUMNS):
        for column, field in zip(st.columns(_COLUMNS), shown[start : start + _COLUMNS], strict=False):
            with column:
                value = _entered(field, full, "shared")
                slots.add(field)
            if value != value_at(full, field.path):
                change_shared(field.path, value)
    return slots


def change_shared(path: str, value: Any) -> None:
    """Set a value that both setups share."""
    before = pair()
    changed = with_value(before.shared, path, value)
    change(type(before)(changed, before.a, before.b))


def _workload_source(full: Mapping[str, Any]) -> None:
    """Where requests come from: made at random, or a trace."""
    known = [_SYNTHETIC, *traces()]
    trace = value_at(full, "workload.trace")
    if trace is not None and trace not in known:
        known.append(trace)
    left, right = st.columns(2)
    with left:
        chosen = st.selectbox(
            "Requests from",
            known,
            index=known.index(trace or _SYNTHETIC),
            help="Made at random, the bundled trace, or one of yours: CSV, JSONL or Parquet with arrival_s, "
            "prompt_tokens and output_tokens, or in the form of a public trace.",
        )
    with right:
        given = st.file_uploader("Your trace", ["csv", "jsonl", "parquet"], key="trace")
    if given is not None and given.file_id != st.session_state.get("trace_read"):
        st.session_state["trace_read"] = given.file_id
        try:
            chosen = keep_trace(given.name, given.getvalue(), folder())
            st.session_state["trace_error"] = None
        except ServetwinError as error:
            st.session_state["trace_error"] = str(error)
    if given is not None and st.session_state.get("trace_error"):
        right.error(st.session_state["trace_error"])
    if chosen != (trace or _SYNTHETIC):
        workload = default_pair().shared["workload"] if chosen == _SYNTHETIC else {"trace": chosen}
        before = pair()
        change(type(before)(before.shared | {"workload": workload}, before.a, before.b))
        st.rerun()


def setup_form(side: str, shared: Slots) -> Checked | None:
    """The fields of one setup, and what it is once checked; None where it is wrong, which then stands on the page."""
    slots = Slots()
    full = complete(pair().document(side))
    shown = shown_fields(SETUP_FIELDS, full)
    _fields(side, shown[:_ALWAYS], full, slots)
    with st.expander("Engine, policies and all other settings"):
        _fields(side, shown[_ALWAYS:], full, slots)
        _other_settings(side)
    with st.expander("Load or save"):
        _load(side)
    try:
        return checked(pair().document(side))
    except ServetwinError as error:
        if not (slots.take(error) or shared.take(error)):
            slots.show(error)
        return None


def _fields(side: str, fields: Sequence[Field], full: Mapping[str, Any], slots: Slots) -> None:
    for start in range(0, len(fields), 2):
        for column, field in zip(st.columns(2), fields[start : start + 2], strict=False):
            with column:
                value = _entered(field, full, side)
                slots.add(field)
            if value != value_at(full, field.path):
                change(pair().with_own(side, with_value(pair().own(side), field.path, value)))


def _entered(field: Field, full: Mapping[str, Any], owner: str) -> Any:
    """What stands in a field: what was typed there, or else what the scenario has."""
    value, key = value_at(full, field.path), f"{owner}.{field.path}"
    shown: dict[str, Any] = st.session_state.setdefault("shown", {})
    start = _start(field, value)
    if key not in st.session_state or st.session_state[key] == shown.get(key):
        st.session_state[key] = start
    entered = shown[key] = _widget(field, value, key)
    if entered == start or (entered is None and not field.optional):
        return value
    return entered


def _start(field: Field, value: Any) -> Any:
    if field.kind == "choice":
        return value
    if field.kind == "switch":
        return bool(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if field.kind == "whole" else float(value)


def _widget(field: Field, value: Any, key: str) -> Any:
    if field.kind == "choice":
        choices = list(field.choices())
        if value not in choices:  # of a link or a file, and wrong: shown, so that the error has its place
            choices.append(value)
        return st.selectbox(field.label, choices, key=key, help=field.help)
    if field.kind == "switch":
        return st.checkbox(field.label, key=key, help=field.help)
    options: dict[str, Any] = {"step": 1, "format": "%d"} if field.kind == "whole" else {"format": "%g"}
    return st.number_input(field.label, value=None, key=key, help=field.help, **options)


def _other_settings(side: str) -> None:
    """Any other setting as KEY=VALUE."""
    with st.form(f"{side}.other", clear_on_submit=False, border=False):
        written = st.text_area(
            "Any other setting: KEY=VALUE, one a line, as for servetwin run --set",
            key=f"{side}.settings",
            placeholder="memory.gpu_memory_utilization=0.95",
        )
        asked = st.form_submit_button("Set")
    if not asked:
        return
    try:
        lines = [line.strip() for line in written.splitlines() if line.strip()]
        document = override(pair().document(side), lines)
    except ServetwinError as error:
        st.error(str(error))
        return
    change(pair().with_scenario(side, document))
    st.rerun()


def _load(side: str) -> None:
    given = st.file_uploader("Scenario file (YAML)", ["yaml", "yml"], key=f"{side}.file")
    if given is not None and given.file_id != st.session_state.get(f"{side}.read"):
        st.session_state[f"{side}.read"] = given.file_id
        try:
            change(pair().with_scenario(side, scenario_in(given.name, given.getvalue())))
        except ServetwinError as error:
            st.session_state[f"{side}.file_error"] = str(error)
        else:
            st.session_state[f"{side}.file_error"] = None
            st.rerun()
    if given is not None and st.session_state.get(f"{side}.file_error"):
        st.error(st.session_state[f"{side}.file_error"])
    if st.button(f"Copy from setup {_other(side)}", key=f"{side}.copy"):
        change(pair().with_own(side, pair().own(_other(side))))
        st.rerun()


def _other(side: str) -> str:
    return SIDES[1 - SIDES.index(side)]
