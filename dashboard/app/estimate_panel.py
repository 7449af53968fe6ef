"""What can be said of setups without simulating them, side by side."""

from collections.abc import Mapping

import streamlit as st

from dashboard.app.panels import table
from dashboard.app.session import Checked
from dashboard.formatting import DASH, number, seconds, share
from dashboard.what_if.estimates import Estimates

_GIB = 2**30


def estimates_panel(found: Mapping[str, Checked]) -> None:
    """A table of both setups' estimates, and what they rest on."""
    sides = list(found)
    rows = {side: _rows(checked.estimates) for side, checked in found.items()}
    first = rows[sides[0]]
    columns = {"": [name for name, _ in first]}
    columns |= {f"Setup {side}": [value for _, value in rows[side]] for side in sides}
    table(columns, [f"Setup {side}" for side in sides])
    for side, checked in found.items():
        st.caption(f"{side}: {_basis(checked.estimates)}")


def _rows(estimates: Estimates) -> list[tuple[str, str]]:
    def gib(size_bytes: int) -> str:
        return f"{size_bytes / _GIB:,.1f} GiB"

    return [
        ("Weights on each GPU", f"{gib(estimates.weight_bytes)} of {gib(estimates.device_bytes)}"),
        ("Activations and runtime", gib(estimates.other_bytes)),
        ("Left for the KV cache", gib(estimates.kv_bytes)),
        (
            "Requests at once in a replica",
            f"{estimates.requests_at_once:,} ({estimates.bounded_by.rpartition('.')[2].replace('_', ' ')})",
        ),
        ("TTFT of a lone request", _maybe(estimates.alone_ttft_s)),
        ("TPOT of a lone request", _maybe(estimates.alone_tpot_s)),
        ("TTFT no faster than (roofline)", seconds(estimates.least_ttft_s)),
        ("TPOT no faster than (roofline)", seconds(estimates.least_tpot_s)),
        ("Output no more than (roofline)", f"{number(float(estimates.most_tokens_per_s))} tokens/s"),
    ]


def _maybe(value_s: float | None) -> str:
    return DASH if value_s is None else seconds(value_s)


def _basis(estimates: Estimates) -> str:
    """What the figures are of, and how far they may be off."""
    of_what = f"of a prompt of {estimates.prompt_tokens:,} and an output of {estimates.output_tokens:,} tokens. "
    if estimates.error is None:
        return f"{of_what}{estimates.kernels} Expect times of a lone request to be off by tens of per cent."
    return (
        f"{of_what}{estimates.kernels} Measured kernels price {share(estimates.measured_share)} of a decode step; the "
        f"median error of their fits is {share(estimates.error)}."
    )
