"""The table of metrics as documents show it: a part of ``docs/reference/outputs.md``."""

from simcore.metrics.metric import Figure, Latency, Rate
from simcore.metrics.registry import figures, latencies

START, END = "<!-- metrics: made by tools/regenerate.py -->", "<!-- end of metrics -->"


def tables() -> str:
    """Latencies, each with mean, percentiles and intervals, then single figures, with where the summary has them."""
    lines = ["| latency | unit | meaning | compared by default |", "|---|---|---|---|"]
    lines += [_latency_row(latency) for latency in latencies()]
    lines += ["", "| figure | unit | better | meaning | compared by default |", "|---|---|---|---|---|"]
    lines += [_figure_row(figure) for figure in figures()]
    return "\n".join(lines)


def with_tables(document: str) -> str:
    """The document with the text between the markers replaced."""
    head, _, rest = document.partition(START)
    return f"{head}{START}\n{tables()}\n{END}{rest.partition(END)[2]}"


def _latency_row(latency: Latency) -> str:
    compared = ", ".join(f"`{latency.name}.{statistic}`" for statistic in latency.compared)
    return (
        f"| `{latency.place}` | {latency.unit} | {latency.title} ({latency.short}): {latency.definition} | {compared} |"
    )


def _figure_row(figure: Figure) -> str:
    better = "lower" if figure.lower_is_better else "higher"
    compared = f"`{figure.name}`" if figure.compared else ""
    meaning = figure.definition + ("; with an interval" if isinstance(figure, Rate) else "")
    return f"| `{figure.place}` | {figure.unit} | {better} | {meaning} | {compared} |"
