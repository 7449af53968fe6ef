"""The table of pools in the report."""

from typing import Any

from dashboard.formatting import number, seconds, share
from dashboard.markup import facts, figure_of, section, text
from simcore.output.cluster_text import replicas_seen

_HEAD = (
    "Pool",
    "Replicas",
    "Role",
    "Engine",
    "Requests",
    "TTFT mean",
    "TTFT P99",
    "TPOT mean",
    "Busy",
    "MFU",
    "MBU",
    "Most KV used",
    "Prefix hits",
    "USD/h",
)


def pools_section(summary: dict[str, Any]) -> str:
    """What each pool did; nothing where no pools are stated."""
    if "pools" not in summary:
        return ""
    head = "".join(f'<th scope="col">{name}</th>' for name in _HEAD)
    rows = "".join(_row(name, pool) for name, pool in summary["pools"].items())
    table = f'<table class="wide"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    note = "A request that is handed over counts in both of its pools."
    moved = _handover(summary["handover"]) if "handover" in summary else ""
    return section("Pools", f'<div class="panel">{table}</div><p class="quiet"><small>{text(note)}</small></p>{moved}')


def _handover(figures: dict[str, Any]) -> str:
    """What moving KV from pool to pool took."""
    rows = [
        ("Requests handed over", number(figures["requests"])),
        ("KV moved, bytes", number(figures["bytes"])),
        ("Lost and computed again", number(figures["recomputed"])),
        *(
            (f"{title}, {name}", figure_of(figures[key][name], seconds))
            for key, title in (("room_wait_s", "First token to room"), ("transfer_wait_s", "Room to last byte"))
            for name in ("mean", "p99")
        ),
    ]
    return f'<div class="panel"><h3>Handover</h3>{facts(rows)}</div>'


def _row(name: str, pool: dict[str, Any]) -> str:
    used = pool["utilisation"]
    kv = pool["kv"]
    cells = [
        text(f"{replicas_seen(pool)} × {pool['devices_per_replica']} {pool['accelerator']}"),
        text(pool["role"]),
        text(pool["engine"]),
        number(pool["requests"]),
        *(figure_of(value, seconds) for value in (pool["ttft_s"]["mean"], pool["ttft_s"]["p99"])),
        figure_of(pool["tpot_s"]["mean"], seconds),
        *(figure_of(used[key], share) for key in ("busy_share", "mfu", "mbu")),
        figure_of(kv["peak_used_blocks"] / kv["blocks_per_replica"], share),
        figure_of(kv["prefix_hit_rate"], share),
        number(pool["usd_per_h"]),
    ]
    return f'<tr><th scope="row">{text(name)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
